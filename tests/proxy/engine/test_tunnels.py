"""CONNECT without decryption, and what is not TLS behind one with it."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from dataclasses import replace
from typing import Any

import pytest

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.hooks import PASS, Decision, NoRules
from dari.proxy.flow import Flow
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import FAST, Memory, proxy, request, tunnel, wire

MB = 1 << 20
AUTHORITY = CertificateAuthority.generate()


async def echo(line: Line) -> None:
    while data := await line.reader.read(65536):
        await line.say(data)
    await line.say(b"bye")


async def test_a_tunnel_passes_bytes_both_ways_and_counts_them() -> None:
    memory = Memory()
    async with origin(echo) as there, proxy(recorder=memory) as engine, tunnel(engine, there.authority) as line:
        await line.send(b"\x00\xffping")
        assert await line.reader.readexactly(6) == b"\x00\xffping"
        line.writer.write_eof()
        assert await line.rest() == b"bye"  # each direction ends by itself
        flow = await memory.flow()
        assert (flow.event, flow.method, flow.authority, flow.status) == ("tunnel", "CONNECT", there.authority, 200)
        assert flow.is_encrypted and flow.tls is not None and flow.tls.problem
        assert (flow.request_body.size_bytes, flow.response_body.size_bytes) == (6, 9)
        assert flow.error is None


async def test_bytes_sent_along_with_connect_reach_the_far_end() -> None:
    async with origin(echo) as there, proxy() as engine, wire(engine) as line:
        head = f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\n".encode()
        await line.send(head + b"early")
        assert (await line.head()).status == 200
        assert await line.reader.readexactly(5) == b"early"


async def test_a_tunnel_to_nowhere_is_502() -> None:
    async with origin() as gone:
        pass
    async with proxy() as engine, wire(engine) as line:
        await line.send(f"CONNECT {gone.authority} HTTP/1.1\r\nHost: {gone.authority}\r\n\r\n".encode())
        assert (await line.reply()).status == 502


@pytest.mark.parametrize("decision", [Decision(), Decision(block_status=403)])
async def test_what_is_sent_into_a_tunnel_that_is_refused_is_never_a_request(decision: Decision) -> None:
    class Rules(NoRules):
        def decide(self, flow: Flow) -> Decision:
            return decision if flow.method == "CONNECT" else PASS

    memory = Memory()
    async with origin() as gone:
        pass
    async with origin() as there, proxy(recorder=memory, rules=Rules()) as engine, wire(engine) as line:
        connect = f"CONNECT {gone.authority} HTTP/1.1\r\nHost: {gone.authority}\r\n\r\n".encode()
        await line.send(connect + request(there.url()))
        reply = await line.reply()
        assert (reply.status, reply.header("connection")) == (decision.block_status or 502, "close")
        await line.send(request(there.url()))
        assert await line.rest() == b""
        assert there.connections == 0 and len(memory.flows) == 1


async def test_a_reset_at_the_far_end_resets_the_client() -> None:
    memory = Memory()

    async def handle(line: Line) -> None:
        await line.reader.readexactly(1)
        sock = line.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.reset()

    async with origin(handle) as there, proxy(recorder=memory) as engine, tunnel(engine, there.authority) as line:
        await line.send(b"x")
        with pytest.raises(ConnectionResetError):
            await line.rest()
        assert (await memory.flow()).error


async def test_a_tunnel_to_a_client_that_does_not_read_is_bounded() -> None:
    sent = 0

    async def handle(line: Line) -> None:
        nonlocal sent
        await line.reader.readexactly(1)
        for _ in range(100):
            await line.say(bytes(MB))
            sent += 1

    async with origin(handle) as there, origin() as other, proxy() as engine:
        async with tunnel(engine, there.authority) as line, wire(engine) as clock:
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await line.send(b"x")
            for _ in range(100):
                assert (await clock.get(other.url())).status == 200
            assert sent < 40
            line.writer.transport.resume_reading()  # type: ignore[attr-defined]
            left = 100 * MB
            while left:
                left -= len(await line.reader.read(4 * MB))


async def test_plain_http_inside_a_decrypted_tunnel_is_read() -> None:
    memory = Memory()
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": AUTHORITY}
    async with origin() as there, proxy(recorder=memory, **ports) as engine, tunnel(engine, there.authority) as line:
        await line.send(b"GET /inside HTTP/1.1\r\nHost: %b\r\n\r\n" % there.authority.encode())
        assert (await line.reply()).status == 200
        flow = await memory.flow()
        assert (flow.scheme, flow.target, flow.event) == ("http", "/inside", "upstream")


async def test_a_url_inside_a_tunnel_may_not_lead_elsewhere() -> None:
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": AUTHORITY}
    async with origin() as there, proxy(**ports) as engine, tunnel(engine, there.authority) as line:
        await line.send(request("http://elsewhere.example/").replace(b"Host: else", b"Host: some"))
        assert (await line.rest()).startswith(b"HTTP/1.1 400 ")
        assert there.connections == 0


async def test_what_is_neither_tls_nor_http_is_tunnelled() -> None:
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": AUTHORITY}
    async with origin(echo) as there, proxy(**ports) as engine, tunnel(engine, there.authority) as line:
        await line.send(b"\x01binary")
        assert await line.reader.readexactly(7) == b"\x01binary"


async def test_a_server_that_speaks_first_is_heard() -> None:
    async def handle(line: Line) -> None:
        await line.say(b"220 mail.example\r\n")
        await line.reader.read()

    memory = Memory()
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": AUTHORITY}
    async with origin(handle) as there, proxy(replace(FAST, sniff_s=0.01), memory, **ports) as engine:
        async with tunnel(engine, there.authority) as line:
            assert await line.reader.readuntil(b"\r\n") == b"220 mail.example\r\n"
        flow = await memory.flow()
        assert flow.is_encrypted and flow.event == "tunnel"


@pytest.mark.parametrize("decrypts", [False, True])
async def test_a_greeting_that_waits_for_nobody_is_not_lost(decrypts: bool) -> None:
    """It is sent by a thread at the moment of the accept, before anybody can have asked for it."""
    door = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        for _ in range(30):
            line, _ = door.accept()
            line.sendall(b"220 mail.example\r\n")
            kept.append(line)

    kept: list[socket.socket] = []
    greeter = threading.Thread(target=greet, daemon=True)
    greeter.start()
    ports: dict[str, Any] = {"rules": NoRules(decrypts), "authority": AUTHORITY}
    async with proxy(replace(FAST, sniff_s=0.01), **ports) as engine:
        for _ in range(30):
            async with tunnel(engine, f"127.0.0.1:{door.getsockname()[1]}") as line:
                assert await line.reader.readuntil(b"\r\n") == b"220 mail.example\r\n"
    greeter.join()
    for line in (*kept, door):
        line.close()


async def test_stopping_ends_tunnels_and_finishes_their_flows() -> None:
    memory = Memory()
    async with origin(echo) as there:
        async with proxy(recorder=memory) as engine, tunnel(engine, there.authority) as line:
            await line.send(b"x")
            await line.reader.readexactly(1)
            await engine.stop()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await line.reader.readexactly(1)
        assert len(memory.done) == 1


def has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as sock:
        try:
            sock.bind(("::1", 0))
        except OSError:
            return False
        return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
async def test_ipv6_is_reached_by_request_and_by_tunnel() -> None:
    async with origin(host="::1") as there, proxy() as engine:
        async with wire(engine) as line:
            assert (await line.get(f"http://[::1]:{there.port}/")).body == b"ok"
            assert there.requests[0].header("host") == f"[::1]:{there.port}"
        async with tunnel(engine, f"[::1]:{there.port}") as line:
            await line.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await line.reply()).body == b"ok"
