"""Event streams: the standing GET stream, resuming, polling, replacing, priming."""

from __future__ import annotations

import asyncio
import json

import pytest

from dari.core.context import Context
from dari.core.tool import tool
from dari.transport import events as events_module
from tests.demo import DemoTools
from tests.transport.rig import Events, Rig, open_events, running, until
from tests.wires import HttpWire, Json, call

OLDER = ["2024-11-05", "2025-03-26", "2025-06-18"]


class Steps(DemoTools):
    """A tool that tells two steps, one before and one after it is released."""

    @tool()
    async def steps(self, context: Context) -> str:
        """Report, wait, report."""
        await context.progress(1)
        self.started.set()
        await self.release.wait()
        await context.progress(2)
        return "done"

    @tool()
    async def polled(self, context: Context) -> str:
        """Let go of the connection, then go on."""
        await context.progress(1)
        context.suspend_stream(retry_ms=70)
        self.started.set()
        await self.release.wait()
        await context.progress(2)
        return "done"


def with_progress(name: str, request_id: int = 1) -> Json:
    message = call(name, request_id)
    message["params"]["_meta"] = {"progressToken": "t"}
    return message


def change(rig: Rig) -> None:
    rig.server.registry.remove_tools("none")


async def start(wire: HttpWire, message: Json) -> None:
    wire.send("POST", "/mcp", json.dumps(message).encode())
    status, headers = await wire.head()
    assert (status, headers["content-type"]) == (200, "text/event-stream")


async def test_a_change_reaches_the_standing_stream() -> None:
    async with running() as rig:
        wire = await rig.session()
        events = await open_events(await rig.again(wire))
        await events.block()
        change(rig)
        event_id, message = await events.next()
        assert message == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert event_id


async def test_an_updated_resource_is_told_to_its_subscribers_only() -> None:
    async with running() as rig:
        wire = await rig.session()
        await wire.post({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "demo://note"}})
        events = await open_events(await rig.again(wire))
        await events.block()
        rig.server.registry.resource_updated("demo://blob")
        rig.server.registry.resource_updated("demo://note")
        assert (await events.message())["params"] == {"uri": "demo://note"}


async def test_a_lost_standing_stream_is_resumed_after_the_last_event_seen() -> None:
    async with running() as rig:
        wire = await rig.session()
        other = await rig.again(wire)
        events = await open_events(other)
        await events.block()
        change(rig)
        seen, _ = await events.next()
        other.writer.close()
        await until(lambda: not rig.endpoint.open)
        change(rig)
        rig.server.registry.events.publish(events_of("prompts"))
        events = await open_events(await rig.again(wire), **{"Last-Event-ID": seen})
        assert [(await events.message())["method"] for _ in range(2)] == [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        ]


def events_of(kind: str) -> object:
    from dari.core.events import ListChanged

    return ListChanged(kind)  # type: ignore[arg-type]


async def test_a_new_stream_does_not_repeat_what_an_older_one_delivered() -> None:
    async with running() as rig:
        wire = await rig.session()
        other = await rig.again(wire)
        events = await open_events(other)
        await events.block()
        change(rig)
        await events.next()
        other.writer.close()
        await until(lambda: not rig.endpoint.open)
        rig.server.registry.events.publish(events_of("prompts"))
        events = await open_events(await rig.again(wire))
        assert (await events.message())["method"] == "notifications/prompts/list_changed"


async def test_a_second_stream_replaces_the_first() -> None:
    async with running() as rig:
        wire = await rig.session()
        first = await open_events(await rig.again(wire))
        await first.block()
        second = await open_events(await rig.again(wire))
        await second.block()
        assert await first.block() == ""
        change(rig)
        assert (await second.message())["method"] == "notifications/tools/list_changed"
        assert len(rig.endpoint.open) == 1


async def test_the_first_event_of_2025_11_25_is_empty_and_has_an_id() -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session("2025-11-25")
        events = await open_events(await rig.again(wire))
        assert await events.block() == "id: g-0\ndata: "
        rig.tools.release.set()
        reply = await wire.post(with_progress("demo_steps"))
        assert reply.body.startswith(b"id: p1-0\ndata: \n\n")


@pytest.mark.parametrize("version", OLDER)
async def test_older_versions_get_no_empty_event(version: str) -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session(version)
        rig.tools.release.set()
        reply = await wire.post(with_progress("demo_steps"))
        assert reply.body.startswith(b"id: p1-1\nevent: message\ndata: {")
        events = await open_events(await rig.again(wire))
        change(rig)
        assert (await events.block()).startswith("id: g-1\nevent: message\ndata: {")


async def test_a_get_without_event_stream_in_accept_is_406() -> None:
    async with running() as rig:
        wire = await rig.session()
        for accept in ("application/json", ""):
            reply = await wire.request("GET", "/mcp", headers={"Accept": accept})
            assert (reply.status, reply.json()) == (406, {"error": "expected Accept: text/event-stream"})


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
        await until(lambda: not rig.endpoint.open)
        rig.tools.release.set()
        await until(lambda: len(rig.server.calls) == 0)
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
        await until(lambda: not rig.endpoint.open)
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
        change(rig)
        assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_the_last_event_id_of_one_session_opens_nothing_of_another() -> None:
    async with running(tools=Steps()) as rig:
        wire, stranger = await rig.session(), await rig.session()
        rig.tools.release.set()
        await wire.post(with_progress("demo_steps"))
        events = await open_events(await rig.again(stranger), **{"Last-Event-ID": "p1-0"})
        change(rig)
        assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_finished_streams_are_kept_for_a_while_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "MOST_STREAMS", 4)
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


async def test_back_pressure_follows_a_stream_to_its_new_connection() -> None:
    async with running(tools=Steps()) as rig:
        wire = await rig.session()
        broken = await rig.again(wire)
        await start(broken, with_progress("demo_steps"))
        await rig.tools.started.wait()
        exchange = next(iter(rig.endpoint.open))
        broken.writer.close()
        await until(lambda: not rig.endpoint.open)
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
        for _ in range(events_module.MOST_UNASKED * 2):
            rig.server.registry.remove_tools("demo_late")
        (session,) = [session for session in rig.server.sessions if session.id]
        assert len(session.streams.standing()._events) == events_module.MOST_UNASKED
