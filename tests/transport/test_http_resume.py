"""Streams that outlive their connection: resumed, polled, kept within bounds."""

from __future__ import annotations

import asyncio
import json

import pytest

from dari.transport import sse as events_module
from tests.support.transports import Events, Steps, open_events, running, with_progress
from tests.support.waiting import turn_until
from tests.support.wire import HttpWire, Json

OLDER = ["2024-11-05", "2025-03-26", "2025-06-18"]


async def start(wire: HttpWire, message: Json) -> None:
    wire.send("POST", "/mcp", json.dumps(message).encode())
    status, headers = await wire.head()
    assert (status, headers["content-type"]) == (200, "text/event-stream")


async def test_a_call_whose_stream_broke_goes_on_and_its_rest_is_fetched() -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session()
        broken = await rig.again(wire)
        await start(broken, with_progress("demo_steps"))
        await rig.tools.started.wait()
        events = Events(broken)
        last, message = await events.next()
        assert message["params"]["progress"] == 1
        broken.writer.close()
        await turn_until(lambda: not rig.endpoint.open)
        rig.tools.release.set()
        await turn_until(lambda: len(rig.server.calls) == 0)
        rest = await open_events(await rig.again(wire), **{"Last-Event-ID": last})
        assert (await rest.message())["params"]["progress"] == 2
        assert (await rest.message())["result"]["content"][0]["text"] == "done"
        assert await rest.block() == ""


async def test_a_client_that_comes_back_during_the_call_gets_the_rest_as_it_happens() -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session()
        broken = await rig.again(wire)
        await start(broken, with_progress("demo_steps"))
        await rig.tools.started.wait()
        broken.writer.close()
        await turn_until(lambda: not rig.endpoint.open)
        rest = await open_events(await rig.again(wire), **{"Last-Event-ID": "p1-0"})
        assert (await rest.message())["params"]["progress"] == 1
        rig.tools.release.set()
        assert (await rest.message())["params"]["progress"] == 2
        assert (await rest.message())["id"] == 1


async def test_a_polled_call_lets_go_of_its_connection_and_is_fetched_later() -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session("2025-11-25")
        reply = await wire.post(with_progress("demo_polled"))
        blocks = reply.body.decode().split("\n\n")
        assert blocks[0] == "id: p1-0\ndata: "
        assert blocks[1].startswith("id: p1-1\n")
        assert blocks[2] == "retry: 70"
        assert len(rig.server.calls) == 1
        assert not next(iter(rig.hub.sessions._by_id.values())).streams.is_watched
        rig.tools.release.set()
        rest = await open_events(wire, **{"Last-Event-ID": "p1-1"})
        assert (await rest.message())["params"]["progress"] == 2
        assert (await rest.message())["result"]["content"][0]["text"] == "done"
        assert await rest.block() == ""
        assert (await wire.post({"jsonrpc": "2.0", "id": 2, "method": "ping"})).status == 200


@pytest.mark.parametrize("version", OLDER)
async def test_older_versions_keep_their_connection_when_a_tool_would_let_go(version: str) -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session(version)
        rig.tools.release.set()
        reply = await wire.post(with_progress("demo_polled"))
        assert [event.get("id") for event in reply.events()] == [None, None, 1]


@pytest.mark.parametrize(
    "last", [b"p9-1", b"nonsense", b"g-", b"g-x", b"-1", b"g--1", b"g-9999999999999999999", b"g-\xb2"]
)
async def test_an_unknown_last_event_id_gets_the_standing_stream(last: bytes) -> None:
    async with running() as rig:
        wire = await rig.session()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        wire.writer.write(f"GET /mcp HTTP/1.1\r\n{head}Last-Event-ID: ".encode() + last + b"\r\n\r\n")
        assert (await wire.head())[0] == 200
        events = Events(wire)
        rig.server.registry.remove_tools("none")
        assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_the_last_event_id_of_one_session_opens_nothing_of_another() -> None:
    async with running(tools=Steps()) as rig:
        wire, stranger = await rig.session(), await rig.session()
        rig.tools.release.set()
        await wire.post(with_progress("demo_steps"))
        events = await open_events(await rig.again(stranger), **{"Last-Event-ID": "p1-0"})
        rig.server.registry.remove_tools("none")
        assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_finished_streams_are_kept_for_a_while_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "MAX_STREAMS", 4)
    async with running(tools=Steps()) as rig:
        wire = await rig.session()
        session = next(iter(rig.hub.sessions._by_id.values()))
        wires = [await rig.again(wire) for _ in range(10)]
        for number, each in enumerate(wires):
            await start(each, with_progress("demo_steps", number))
        rig.tools.release.set()
        for each in wires:
            while await each.chunk():
                pass
        await wire.post(with_progress("demo_steps", 99))
        assert len(session.streams._streams) <= 4


@pytest.mark.parametrize(("size", "count"), [(1, 5000), (100_000, 100), (10_000_000, 3)])
def test_a_stream_keeps_a_bounded_part_of_its_past(size: int, count: int) -> None:
    stream = events_module.EventStream("s")
    for _ in range(count):
        stream.emit(b"x" * size)
    assert len(stream._events) <= events_module.MAX_EVENTS
    assert stream.size_bytes <= max(events_module.MAX_BYTES, size + 100)
    assert stream._events[-1][0] == count


async def test_back_pressure_follows_a_stream_to_its_new_connection() -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session()
        broken = await rig.again(wire)
        await start(broken, with_progress("demo_steps"))
        await rig.tools.started.wait()
        exchange = next(iter(rig.endpoint.open))
        broken.writer.close()
        await turn_until(lambda: not rig.endpoint.open)
        await open_events(await rig.again(wire), **{"Last-Event-ID": "p1-0"})
        flow = next(iter(rig.endpoint.open)).protocol.flow
        flow.pause_writing()
        draining = asyncio.ensure_future(exchange.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        flow.resume_writing()
        await draining


async def test_a_change_before_the_client_opens_its_stream_is_not_lost() -> None:
    async with running() as rig:
        wire = await rig.session("2025-06-18")
        rig.server.registry.resource_updated("demo://unsubscribed")
        rig.server.registry.remove_tools("demo_late")
        events = await open_events(wire)
        assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_a_session_that_never_opens_its_stream_keeps_few_events() -> None:
    async with running() as rig:
        await rig.session()
        for _ in range(events_module.MAX_UNSOLICITED * 2):
            rig.server.registry.remove_tools("demo_late")
        (session,) = [session for session in rig.server.sessions if session.id]
        assert len(session.streams.standing()._events) == events_module.MAX_UNSOLICITED
