"""An hour of an agent's traffic, by count: requests of every kind, whole and broken, without growth."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import random
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.proxy.faults.process import EngineProcess, engine_process
from tests.proxy.faults.stage import ended, rst
from tests.support.leftovers import nothing_left
from tests.support.origins.origin import Line, Origin, Seen, origin
from tests.support.proxy_engine import request
from tests.support.proxy_lab import THEIRS
from tests.support.proxy_site import Site

LOOPS = ["uvloop"]
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="memory and descriptors are read from /proc"),
]

# An agent at work makes five to six requests a second.
TOTAL = 20_000
WARM_UP = 6_000
WORKERS = 8
# 14,000 requests that each kept 600 bytes would show; allocators alone move by about 1 MiB.
GROWTH_KIB = 8 * 1024
UNTRUSTING = ssl.create_default_context()


class Rough(Site):
    """The site, with paths on which it misbehaves."""

    async def _answer(self, line: Line, seen: Seen, method: str, path: str, query: str) -> None:
        line.origin.requests.clear()
        line.origin.received = b""
        self.has_ended_early.clear()
        if path == "/reset":
            rst(line.writer)
        elif path == "/cut":
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        elif path == "/garbage":
            await line.say(b"\x00\x01 what\r\n\r\n")
        else:
            await super()._answer(line, seen, method, path, query)
            return
        raise ConnectionResetError


class Visitor:
    """One visit is one connection with some requests; `flows` counts what each visit must have recorded."""

    def __init__(self, engine: EngineProcess, plain: Origin, secure: Origin, raw: Origin) -> None:
        self._engine = engine
        self._plain = plain
        self._secure = secure
        self._raw = raw
        self.flows = 0
        self.visits: Counter[str] = Counter()
        self.kinds: list[tuple[Callable[[], Awaitable[int]], int]] = [
            (self.plain, 40), (self.decrypted, 30), (self.uploads, 10), (self.broken, 15), (self.unreachable, 3),
            (self.tunnelled, 12), (self.sockets, 10), (self.secure_sockets, 5), (self.leaving, 12),
            (self.untrusting, 8), (self.malformed, 8), (self.multiplexed, 6),
        ]  # fmt: skip

    async def until(self, total: int, dice: random.Random) -> None:
        kinds, weights = zip(*self.kinds, strict=True)
        while self.flows < total:
            visit = dice.choices(kinds, weights)[0]
            self.visits[visit.__name__] += 1
            recorded = await visit()
            self.flows += recorded

    async def plain(self) -> int:
        async with self._engine.line() as line:
            for _ in range(30):
                assert (await line.get(self._plain.url("/hello"))).body == b"0123456789"
        return 30

    async def decrypted(self) -> int:
        async with self._engine.decrypted(self._secure_authority) as line:
            for _ in range(20):
                await line.send(b"GET /chunked HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await line.reply()).body == b"three chunks"
        return 20

    async def uploads(self) -> int:
        async with self._engine.line() as line:
            for size in (10, 1000, 100_000):
                url, body = self._plain.url("/echo"), bytes(size)
                await line.send(request(url, f"Content-Length: {size}", method="POST", body=body))
                assert f'"size": {size}'.encode() in (await line.reply()).body
                chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body)
                await line.send(request(url, "Transfer-Encoding: chunked", method="POST", body=chunks))
                assert f'"size": {size}'.encode() in (await line.reply()).body
        return 6

    async def broken(self) -> int:
        for path, status in (("/reset", 502), ("/garbage", 502)):
            async with self._engine.line() as line:
                assert (await line.get(self._plain.url(path), "Cookie: a=b")).status == status
        async with self._engine.line() as line:
            await line.send(request(self._plain.url("/cut")))
            assert (await ended(line)).endswith(b"half")
        return 3

    async def unreachable(self) -> int:
        async with self._engine.line() as line:
            assert (await line.get("http://127.0.0.1:1/")).status == 502
        return 1

    async def tunnelled(self) -> int:
        async with self._engine.tunnel(self._raw.authority) as line:
            for _ in range(3):
                await line.send(b"\x00\x01\x02\x03")
                assert await line.reader.readexactly(4) == b"\x00\x01\x02\x03"
        return 1

    async def sockets(self) -> int:
        return await self._socket(f"ws://{self._plain.authority}/ws", None)

    async def secure_sockets(self) -> int:
        return await self._socket(f"wss://{self._secure_authority}/ws", self._engine.trusts)

    async def leaving(self) -> int:
        async with self._engine.line() as line:
            await line.send(request(self._plain.url("/endless")))
            await line.head()
            line.reset()
        return 1

    async def untrusting(self) -> int:
        async with self._engine.tunnel(self._secure_authority) as line:
            with pytest.raises(ssl.SSLCertVerificationError):
                await line.start_tls(UNTRUSTING, "localhost")
        return 1

    async def multiplexed(self) -> int:
        """Twenty streams side by side, of which one breaks off and one is dropped."""
        options = {"proxy": self._engine.url, "http2": True, "trust_env": False, "timeout": 60}
        async with httpx.AsyncClient(verify=self._engine.h2_trusts, **options) as client:  # type: ignore[arg-type]
            base = f"https://{self._secure_authority}"
            await client.get(f"{base}/hello")
            whole = asyncio.gather(*(client.get(f"{base}/hello") for _ in range(17)))
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(f"{base}/cut")
            async with client.stream("GET", f"{base}/events") as events:
                assert await anext(events.aiter_raw()) == b"data: one\n\n"
            assert {(reply.text, reply.http_version) for reply in await whole} == {("0123456789", "HTTP/2")}
        return 20

    async def malformed(self) -> int:
        async with self._engine.line() as line:
            await line.send(b"GET http://localhost/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
            assert (await line.reply()).status == 400
        return 1

    @property
    def _secure_authority(self) -> str:
        return f"localhost:{self._secure.port}"

    async def _socket(self, url: str, tls: ssl.SSLContext | None) -> int:
        async with connect(url, proxy=self._engine.url, ssl=tls, open_timeout=30, close_timeout=30) as socket:
            for text in ("one", "two" * 1000):
                await socket.send(text)
                assert await socket.recv() == text
        return 1


async def echo(line: Line) -> None:
    while data := await line.reader.read(1000):
        await line.say(data)


async def test_twenty_thousand_requests_leave_no_trace_but_their_flows(tmp_path: Path) -> None:
    site, tls = Rough(), THEIRS.context_for("localhost")
    async with nothing_left(), origin(site) as plain, origin(site, tls) as secure, origin(echo) as raw:
        async with engine_process(tmp_path, stores=True, capacity=500, tick_s=0.1) as engine:
            visitor = Visitor(engine, plain, secure, raw)

            async def rest(total: int) -> None:
                dice = [random.Random(total + seed) for seed in range(WORKERS)]
                await asyncio.gather(*(visitor.until(total, one) for one in dice))

            first = await engine.stats()
            await rest(WARM_UP)
            warm = await engine.until(lambda stats: stats.connections == 0)
            await rest(TOTAL)
            after = await engine.until(lambda stats: stats.connections == 0)

            assert after.began == after.finished == visitor.flows >= TOTAL
            assert after.rss_kib - warm.rss_kib < GROWTH_KIB, (warm, after)
            after = await engine.until(lambda stats: stats.fds <= first.fds + stats.pooled + 4)
            assert after.tasks == first.tasks
            expected = visitor.visits
            assert after.outcomes["bad_request 400"] == expected["malformed"]
            assert after.outcomes["upstream 101"] == expected["sockets"] + expected["secure_sockets"]
            assert after.outcomes["upstream_error 502"] == 2 * expected["broken"] + expected["unreachable"]
            assert after.outcomes["upstream_error 200"] == expected["broken"] + expected["multiplexed"]
            assert after.frames >= 4 * after.outcomes["upstream 101"]
