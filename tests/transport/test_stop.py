"""The graceful stop: new work refused, streams ended, listeners told, running calls finished or ended in time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dari.core.tool import tool
from tests.support.demo_server import DemoTools
from tests.support.transports import Events, Rig, open_events, running
from tests.support.waiting import turn_until
from tests.support.wire import Json, call, envelope_headers, initialize, stateless

LISTEN = stateless(
    {
        "jsonrpc": "2.0",
        "id": "l",
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}},
    }
)
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Stubborn(DemoTools):
    """A tool that takes its time even when it is cancelled."""

    @tool()
    async def stubborn(self) -> str:
        """Never end willingly."""
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
            await self.release.wait()
        return "never"


async def stopping(rig: Rig) -> asyncio.Task[None]:
    task = asyncio.create_task(rig.hub.stop())
    await turn_until(lambda: rig.endpoint.is_stopping)
    return task


async def test_a_stop_without_clients_is_over_at_once() -> None:
    async with running(stop_grace_s=3600) as rig:
        await rig.hub.stop()
        with pytest.raises(OSError):
            await rig.http()


async def test_an_idle_connection_does_not_hold_up_the_stop() -> None:
    async with running(stop_grace_s=3600) as rig:
        wire = await rig.session()
        await rig.hub.stop()
        assert await wire.reader.read() == b""
        assert rig.counts()["connections"] == 0


async def test_a_standing_stream_ends_in_good_order() -> None:
    async with running(stop_grace_s=3600) as rig:
        wire = await rig.session()
        events = await open_events(await rig.again(wire))
        await events.block()
        await rig.hub.stop()
        assert await events.block() == ""
        assert rig.counts()["sessions"] == 0


async def test_a_listener_gets_its_final_result() -> None:
    async with running(stop_grace_s=3600) as rig:
        wire = await rig.http()
        wire.send("POST", "/mcp", json.dumps(LISTEN).encode(), envelope_headers(LISTEN))
        await wire.head()
        events = Events(wire)
        await events.message()
        await rig.hub.stop()
        result = await events.message()
        assert (result["id"], result["result"]) == ("l", {"resultType": "complete", "_meta": {SUBSCRIPTION: "l"}})
        assert await events.block() == ""


async def test_a_listener_on_the_unix_socket_gets_its_final_result(tmp_path: Path) -> None:
    async with running(stop_grace_s=3600, socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        wire.send(LISTEN)
        await wire.receive()
        await rig.hub.stop()
        assert (await wire.receive())["id"] == "l"
        assert await wire.reader.read() == b""


@pytest.mark.parametrize("transport", ["http", "unix", "http on unix"])
async def test_a_running_call_finishes_and_its_answer_arrives(tmp_path: Path, transport: str) -> None:
    async with running(stop_grace_s=3600, socket_path=tmp_path / "s") as rig:
        wire = {"http": rig.http, "unix": rig.unix, "http on unix": rig.http_on_unix}[transport]
        client = await wire()
        await client.ask(initialize())
        asking = asyncio.create_task(client.ask(call("demo_hang", 1)))
        await rig.tools.started.wait()
        stop = await stopping(rig)
        assert not (tmp_path / "s").exists()
        rig.tools.release.set()
        assert (await asking)["result"]["content"][0]["text"] == "released"
        await stop
        assert await client.reader.read() == b""


async def test_the_answer_says_that_the_connection_ends() -> None:
    async with running(stop_grace_s=3600) as rig:
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 1)).encode())
        await rig.tools.started.wait()
        stop = await stopping(rig)
        rig.tools.release.set()
        assert (await wire.receive()).headers["connection"] == "close"
        await stop


async def test_a_request_whose_turn_comes_during_the_stop_is_503() -> None:
    async with running(stop_grace_s=3600) as rig:
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 1)).encode())
        wire.send("POST", "/mcp", json.dumps(call("demo_echo", 2, text="x")).encode())
        await turn_until(lambda: rig.connections[0].pipeline)
        stop = await stopping(rig)
        rig.tools.release.set()
        assert (await wire.receive()).status == 200
        reply = await wire.receive()
        assert (reply.status, reply.json()) == (503, {"error": "the server is stopping"})
        await stop


async def test_a_new_connection_is_refused_during_the_stop() -> None:
    async with running(stop_grace_s=3600) as rig:
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 1)).encode())
        await rig.tools.started.wait()
        stop = await stopping(rig)
        with pytest.raises(OSError):
            await rig.http()
        rig.tools.release.set()
        await stop


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_call_that_does_not_finish_is_ended_with_the_grace(era: str) -> None:
    async with running(stop_grace_s=0.01) as rig:
        wire = await rig.session()
        message: Json = call("demo_hang", 1)
        message = stateless(message) if era == "stateless" else message
        wire.send("POST", "/mcp", json.dumps(message).encode(), envelope_headers(message))
        await rig.tools.started.wait()
        await rig.hub.stop()
        await rig.tools.cancelled.wait()
        assert (await wire.receive()).json()["error"]["code"] == -32800
        assert await wire.reader.read() == b""
        await turn_until(lambda: not rig.server.calls)


async def test_a_call_on_the_unix_socket_that_does_not_finish_is_ended_with_the_grace(tmp_path: Path) -> None:
    async with running(stop_grace_s=0.01, socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize())
        wire.send(call("demo_hang", 1))
        await rig.tools.started.wait()
        await rig.hub.stop()
        await rig.tools.cancelled.wait()
        assert await wire.reader.read() == b""


async def test_a_request_on_the_unix_socket_during_the_stop_is_not_served(tmp_path: Path) -> None:
    async with running(stop_grace_s=3600, socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize())
        wire.send(call("demo_hang", 1))
        await rig.tools.started.wait()
        stop = await stopping(rig)
        wire.send(call("demo_hang", 2))
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(rig.server.calls) == 1
        rig.tools.release.set()
        assert (await wire.receive())["id"] == 1
        assert await wire.reader.read() == b""
        await stop


async def test_a_tool_that_will_not_end_does_not_hold_up_the_stop() -> None:
    async with running(tools=Stubborn(), stop_grace_s=0.01) as rig:
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_stubborn", 1)).encode())
        await rig.tools.started.wait()
        await rig.hub.stop()
        assert rig.tools.cancelled.is_set()
        assert rig.counts()["connections"] == 0


async def test_a_client_that_sends_half_a_request_does_not_hold_up_the_stop() -> None:
    async with running(stop_grace_s=0.01) as rig:
        wire = await rig.session()
        wire.writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        await turn_until(lambda: rig.endpoint.open)
        await rig.hub.stop()
        assert not rig.endpoint.open


async def test_stopping_twice_is_stopping_once() -> None:
    async with running() as rig:
        await asyncio.gather(rig.hub.stop(), rig.hub.stop())
        await rig.hub.stop()
