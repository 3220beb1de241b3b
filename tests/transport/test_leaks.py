"""Many clients, rude clients: afterwards sessions, calls, exchanges, tasks and descriptors are what they were."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.transports import open_events, running
from tests.support.waiting import turn_until
from tests.support.wire import (
    DemoProcess,
    HttpWire,
    StreamWire,
    call,
    demo_process,
    envelope_headers,
    initialize,
    stateless,
)

CLIENTS = 200


def descriptors(server: DemoProcess) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


async def aborted(wire: HttpWire | StreamWire) -> None:
    """Leave without a word: the server sees a reset."""
    wire.writer.transport.abort()
    with suppress(ConnectionError):
        await wire.writer.wait_closed()


async def test_200_http_sessions_at_once_leave_nothing_behind() -> None:
    async with running() as rig:
        before = rig.holdings()

        async def visit(number: int) -> None:
            wire = await rig.session()
            events = await open_events(await rig.again(wire))
            for step in range(5):
                reply = await wire.ask(call("demo_echo", step, text=f"{number}-{step}"))
                assert reply["result"]["structuredContent"]["text"] == f"{number}-{step}"
            await events.block()
            assert (await wire.request("DELETE", "/mcp")).status == 204

        await asyncio.gather(*map(visit, range(CLIENTS)))
        await rig.close_wires()
        await rig.until_back_to(before)


async def test_200_unix_connections_at_once_leave_nothing_behind(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        before = rig.holdings()

        async def visit(number: int) -> None:
            wire = await rig.unix()
            await wire.ask(initialize())
            for step in range(5):
                reply = await wire.ask(call("demo_echo", step, text=f"{number}-{step}"))
                assert reply["result"]["structuredContent"]["text"] == f"{number}-{step}"

        await asyncio.gather(*map(visit, range(CLIENTS)))
        assert rig.counts()["server sessions"] == CLIENTS
        await rig.close_wires()
        await rig.until_back_to(before)


async def test_200_stateless_clients_that_vanish_in_the_middle_of_a_call_leave_nothing_behind() -> None:
    async with running() as rig:
        before = rig.holdings()
        message = stateless(call("demo_hang", 1))
        wires = [await rig.http() for _ in range(CLIENTS)]
        for wire in wires:
            wire.send("POST", "/mcp", json.dumps(message).encode(), envelope_headers(message))
        await turn_until(lambda: len(rig.server.calls) == CLIENTS)
        await asyncio.gather(*map(aborted, wires))
        await rig.until_back_to(before)


async def test_clients_that_vanish_in_the_middle_of_their_streams_leave_nothing_behind(tmp_path: Path) -> None:
    async with running(socket_path=tmp_path / "s") as rig:
        before = rig.holdings()
        lines = [await rig.unix() for _ in range(50)]
        for wire in lines:
            await wire.ask(initialize())
            wire.send(call("demo_hang", 1))
            listen = {"jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": {"notifications": {}}}
            wire.send(stateless(listen))
        http = [await rig.session() for _ in range(50)]
        for each in http:
            each.send("GET", "/mcp")
        await turn_until(lambda: len(rig.server.calls) == len(rig.server.listening) == len(rig.endpoint.open) == 50)
        await asyncio.gather(*map(aborted, [*lines, *http]))
        await turn_until(lambda: rig.counts() == before.counts | {"sessions": 50, "server sessions": 50})
        for session in list(rig.hub.sessions._by_id.values()):
            rig.hub.sessions.end(session, "expired")
        await rig.until_back_to(before)


HALF_REQUESTS = [
    b"P",
    b"POST /mcp HTTP/1.1\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: evil\r\nContent-Length: 99999\r\n\r\n{",
]


@pytest.mark.parametrize("ending", ["close", "reset", "half-close"])
async def test_clients_that_leave_in_the_middle_of_a_request_leave_nothing_behind(ending: str) -> None:
    async with running() as rig:
        before = rig.holdings()
        wires = [await rig.http() for _ in HALF_REQUESTS for _ in range(5)]
        for number, wire in enumerate(wires):
            wire.writer.write(HALF_REQUESTS[number % len(HALF_REQUESTS)])
            await wire.writer.drain()
        for wire in wires:
            if ending == "reset":
                await aborted(wire)
            elif ending == "half-close":
                wire.writer.write_eof()
        await rig.close_wires()
        await rig.until_back_to(before)
        assert (await (await rig.http()).post(initialize())).status == 200


async def test_a_process_gives_back_every_descriptor(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as server:
        stdio = server.stdio()
        await stdio.ask(initialize())
        await (await server.http()).ask(initialize())
        await until_idle(server)
        before = descriptors(server)

        async def visit(number: int) -> None:
            wire = await (server.unix() if number % 3 else server.http())
            await wire.ask(initialize())
            assert (await wire.ask(call("demo_size", 1, text="x" * 1000)))["id"] == 1
            wire_leaves = wire.writer.transport.abort if number % 2 else wire.writer.close
            wire_leaves()

        await asyncio.gather(*map(visit, range(CLIENTS)))
        while descriptors(server) > before:
            assert (await stdio.ask({"jsonrpc": "2.0", "id": 3, "method": "ping"}))["id"] == 3
        assert descriptors(server) <= before


async def until_idle(server: DemoProcess) -> None:
    """The first connection is closed and the server has noticed."""
    for writer in server._writers:
        writer.close()
        await writer.wait_closed()
    idle = await server.http()
    assert (await idle.request("GET", "/healthz")).status == 200
    idle.writer.close()
    await idle.writer.wait_closed()


async def test_a_client_that_reconnects_for_every_call_costs_nothing_more() -> None:
    async with running() as rig:
        wire = await rig.session()
        before = rig.holdings()
        for number in range(100):
            once = await rig.again(wire)
            assert (await once.ask(call("demo_echo", number, text="x")))["id"] == number
            once.writer.close()
            await once.writer.wait_closed()
        await rig.until_back_to(before)
