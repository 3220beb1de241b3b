"""The first bytes of a connection are read within bounds, of memory and of time, whatever a client makes of them."""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.client_hello import Incomplete, server_name
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.listener import ProxyEngine
from dari.proxy.engine.sniffer import ProtocolSniffer
from tests.support.origins.origin import origin
from tests.support.proxy_engine import FAST, Memory, Wire, proxy, tunnel
from tests.support.waiting import until

OURS = CertificateAuthority.generate()
PATIENT = replace(FAST, connect_timeout_s=3600)
EMPTY = b"\x16\x03\x01\x00\x00"


def records(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


def hello(name: str) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def is_incomplete(data: bytes) -> bool:
    try:
        server_name(data)
    except Incomplete:
        return True
    return False


@pytest.mark.parametrize("count", [1, 2, 100_000])
def test_empty_records_are_not_waited_behind(count: int) -> None:
    assert server_name(EMPTY * count) is None
    assert server_name(records(b"\x01\x00", 2) + EMPTY) is None


def test_a_hello_in_pieces_is_read_and_one_in_crumbs_is_not() -> None:
    body = hello("some.example")[5:]
    assert server_name(records(body, 10)) == "some.example"
    endless = b"\x01\x00\xff\xff" + bytes(65535)
    assert server_name(records(endless, 1)) is None
    for size in (1, 100, 16384):
        assert not is_incomplete(records(endless, size)[: 64 * 1024 + 16384]), size


def test_a_record_longer_than_tls_allows_is_not_waited_for() -> None:
    assert is_incomplete(b"\x16\x03\x01\x40\x00\x01")
    assert server_name(b"\x16\x03\x01\x40\x01\x01") is None


async def test_a_client_that_sends_empty_records_is_sent_away() -> None:
    memory = Memory()
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": OURS}
    async with origin() as there, proxy(PATIENT, memory, **ports) as engine, tunnel(engine, there.authority) as line:
        line.writer.write(EMPTY * 20_000)
        with suppress(ConnectionResetError):  # it has sent more than anybody read
            await line.rest()
        assert (await memory.flow()).error and there.connections == 0


def sniffer_of(engine: ProxyEngine) -> ProtocolSniffer:
    core = engine._core
    assert core is not None
    (found,) = (one for one in core.connections if isinstance(one, ProtocolSniffer))
    return found


async def say(engine: ProxyEngine, line: Wire, data: bytes) -> None:
    sniffer = sniffer_of(engine)
    size = len(sniffer._buffer) + len(data)
    await line.send(data)
    await until(lambda: len(sniffer._buffer) == size)


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"\x16\x03\x01\x02\x00\x01", b"\x00"), (b"PRI * HT", b"TP/2.0")],
    ids=["TLS", "HTTP/2"],
)
async def test_a_beginning_that_drips_gets_no_more_time_for_each_drop(first: bytes, second: bytes) -> None:
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": OURS}
    async with origin() as there, proxy(**ports) as engine, tunnel(engine, there.authority) as line:
        sniffer = sniffer_of(engine)
        await say(engine, line, first)
        deadline = sniffer.deadline
        assert deadline < float("inf")
        await say(engine, line, second)
        assert sniffer.deadline == deadline
