"""Clients and origins that misbehave at random: no callback raises, every flow is finished once, nothing is left."""

from __future__ import annotations

import asyncio
import random
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.hooks import NoRules
from tests.support.origins.origin import OK, Handler, Line, origin
from tests.support.proxy_engine import FAST, Memory, Wire, proxy, request, tunnel, wire

RESPONSES = [
    OK,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX",
    b"HTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 103 Early\r\n\r\n" + OK,
    b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    b"garbage",
    b"",
    OK + OK,
]


def misbehaving(dice: random.Random) -> Handler:
    async def handle(line: Line) -> None:
        while True:
            try:
                seen = await line.head()
                if seen is None:
                    return
                if dice.random() < 0.7:
                    await line.body(seen)
            except (asyncio.LimitOverrunError, ValueError):
                return  # it took a body that it had not read for the next head
            data = dice.choice(RESPONSES)
            cut = dice.randrange(len(data) + 1)
            await line.say(data[:cut])
            await line.say(data[cut:])
            if dice.random() < 0.3:
                line.reset()
                return
            if data is not OK or dice.random() < 0.3:
                return

    return handle


async def visit(line: Wire, dice: random.Random, url: str) -> None:
    body = dice.choice([b"", b"hello", b"x" * 100_000])
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:3], body[3:]) if part) + b"0\r\n\r\n"
    forms = [
        request(url),
        request(url, f"Content-Length: {len(body)}", method="POST", body=body),
        request(url, "Transfer-Encoding: chunked", method="POST", body=chunked),
        request(url, version="1.0"),
        request(url, "Connection: close"),
        request(url, method="HEAD"),
        b"GET / HTTP/1.1\r\n\r\n",
        request(url, "Transfer-Encoding: chunked", method="POST", body=b"5\r\nhelloXX"),
        f"CONNECT {url.split('/')[2]} HTTP/1.1\r\nHost: a\r\n\r\n".encode() + request("/", "X: y"),
    ]
    data = b"".join(dice.choice(forms) for _ in range(dice.randrange(1, 4)))
    cut = dice.randrange(len(data) + 1)
    await line.send(data[:cut])
    if dice.random() < 0.2:
        line.reset()
        return
    await line.send(data[cut:])
    line.writer.write_eof()
    await line.rest()


@pytest.mark.parametrize("seed", range(4))
async def test_chaos_leaves_nothing_behind(seed: int) -> None:
    dice = random.Random(seed)
    memory = Memory()
    async with origin(misbehaving(dice)) as there, proxy(FAST, memory) as engine:

        async def client() -> None:
            async with wire(engine) as line:
                try:
                    await visit(line, dice, there.url())
                except (ConnectionError, asyncio.IncompleteReadError):
                    pass

        for _ in range(15):
            await asyncio.gather(*(client() for _ in range(20)))
        await engine.stop()
        assert engine.connection_count == 0
        assert all(flow.state == "done" for flow in memory.flows)
        assert len(memory.flows) == len(memory.done) == len(set(map(id, memory.done)))


@pytest.mark.parametrize("seed", range(3))
async def test_chaos_under_tls_leaves_nothing_behind(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    memory = Memory()
    ours, theirs = CertificateAuthority.generate(), CertificateAuthority.generate()
    (tmp_path / "roots.pem").write_bytes(theirs.pem)
    config = replace(FAST, ca_file=str(tmp_path / "roots.pem"), request_timeout_s=0.1, response_timeout_s=0.1)
    trusting = ssl.create_default_context(cadata=ours.pem.decode())
    handle, tls = misbehaving(dice), theirs.context_for("localhost")
    async with origin(handle, tls) as there:
        async with proxy(config, memory, rules=NoRules(True), authority=ours) as engine:

            async def client() -> None:
                async with tunnel(engine, f"localhost:{there.port}") as line:
                    try:
                        await line.start_tls(trusting, "localhost")
                        head = request("localhost", f"Content-Length: {5 * dice.randrange(20_000)}", method="PUT")
                        await line.send(head.replace(b"PUT localhost", b"PUT /"), b"hello" * dice.randrange(20_000))
                        if dice.random() < 0.5:
                            await line.reply()
                    except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                        pass
                    line.reset()

            for _ in range(8):
                await asyncio.gather(*(client() for _ in range(10)))
            await engine.stop()
        assert len(memory.flows) == len(memory.done) == len(set(map(id, memory.done)))
