"""The standing GET stream: changes delivered once, resumed, replaced, primed."""

from __future__ import annotations

import pytest

from dari.core.events import ListChanged
from tests.support.transports import Rig, Steps, open_events, running, with_progress
from tests.support.waiting import turn_until

OLDER = ["2024-11-05", "2025-03-26", "2025-06-18"]


def change(rig: Rig) -> None:
    rig.server.registry.remove_tools("none")


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
        await turn_until(lambda: not rig.endpoint.open)
        change(rig)
        rig.server.registry.events.publish(ListChanged("prompts"))
        events = await open_events(await rig.again(wire), **{"Last-Event-ID": seen})
        assert [(await events.message())["method"] for _ in range(2)] == [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        ]


async def test_a_new_stream_does_not_repeat_what_an_older_one_delivered() -> None:
    async with running() as rig:
        wire = await rig.session()
        other = await rig.again(wire)
        events = await open_events(other)
        await events.block()
        change(rig)
        await events.next()
        other.writer.close()
        await turn_until(lambda: not rig.endpoint.open)
        rig.server.registry.events.publish(ListChanged("prompts"))
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
