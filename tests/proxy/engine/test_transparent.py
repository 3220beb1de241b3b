"""The second listener: no CONNECT, no absolute URL; the first bytes say what it is and where it goes."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.client_hello import Incomplete, server_name
from dari.proxy.engine.hooks import Decision, NoRules
from dari.proxy.flow import Flow
from tests.support.origins.origin import origin
from tests.support.proxy_engine import FAST, Memory, proxy, wire

OURS = CertificateAuthority.generate()
CONFIG = replace(FAST, transparent_port=0)


async def test_plain_http_goes_where_host_says() -> None:
    memory = Memory()
    async with origin() as there, proxy(CONFIG, memory) as engine, wire(engine, engine.transparent_address) as line:
        for _ in range(2):
            await line.send(b"GET /t HTTP/1.1\r\nHost: %b\r\n\r\n" % there.authority.encode())
            assert (await line.reply()).body == b"ok"
        assert (await memory.flow(2)).url == there.url("/t")


async def test_tls_is_decrypted_with_a_leaf_for_its_sni() -> None:
    """The origin's port cannot be told without a redirect, so the answer is the proxy's own 502."""
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": OURS}
    memory = Memory()
    async with proxy(CONFIG, memory, **ports) as engine, wire(engine, engine.transparent_address) as line:
        await line.start_tls(ssl.create_default_context(cadata=OURS.pem.decode()), "no-such-host.invalid")
        await line.send(b"GET /t HTTP/1.1\r\nHost: no-such-host.invalid\r\n\r\n")
        assert (await line.reply()).status == 502
        flow = await memory.flow()
        assert flow.url == "https://no-such-host.invalid/t"
        assert flow.tls is not None and flow.tls.sni == "no-such-host.invalid"


async def test_tls_without_sni_and_other_noise_is_closed() -> None:
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": OURS}
    async with proxy(CONFIG, **ports) as engine:
        for data in (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", b"\x00noise"):
            async with wire(engine, engine.transparent_address) as line:
                await line.send(data)
                assert await line.rest() == b""


async def test_the_listener_comes_and_goes_while_the_engine_runs() -> None:
    async with proxy() as engine:
        assert engine.transparent_address is None
        await engine.apply(CONFIG)
        assert engine.transparent_address is not None
        await engine.apply(FAST)
        assert engine.transparent_address is None


def hello(name: str | None) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def test_the_server_name_is_read_from_a_hello_in_any_pieces(tmp_path: Path) -> None:
    data = hello("Some.Example")
    for end in range(len(data)):
        try:
            server_name(data[:end])
        except Incomplete:
            continue
        raise AssertionError(end)
    assert server_name(data) == "some.example"
    # One handshake message in two records, as some clients send it to confuse middle boxes.
    body = data[5:]
    split = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (body[:50], body[50:]))
    assert server_name(split) == "some.example"


def test_a_hello_without_a_name_has_none() -> None:
    assert server_name(hello(None)) is None


class Blocking(NoRules):
    def decide(self, flow: Flow) -> Decision:
        return Decision(block_status=403)


async def test_a_blocked_host_is_reset_because_nobody_reads_a_status_there() -> None:
    memory = Memory()
    ports: dict[str, Any] = {"rules": Blocking(), "authority": OURS}
    async with proxy(CONFIG, memory, **ports) as engine, wire(engine, engine.transparent_address) as line:
        await line.send(hello("blocked.example"))
        with pytest.raises(ConnectionResetError):
            await line.rest()
        flow = await memory.flow()
        assert (flow.event, flow.authority) == ("blocked", "blocked.example:443")
