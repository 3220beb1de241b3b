"""`subscriptions/listen`: acknowledged, then exactly the events that were asked for, each with its subscription."""

from __future__ import annotations

from typing import Any

import pytest

from dari.core.events import Event, ListChanged, ResourceUpdated
from tests.support.mcp_server import Rig, notification, ready, request
from tests.support.wire import Json, stateless

ID = "io.modelcontextprotocol/subscriptionId"
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["demo://note"],
}
EVENTS: dict[str, tuple[Event, Json]] = {
    "toolsListChanged": (ListChanged("tools"), {"method": "notifications/tools/list_changed", "params": {}}),
    "promptsListChanged": (ListChanged("prompts"), {"method": "notifications/prompts/list_changed", "params": {}}),
    "resourcesListChanged": (
        ListChanged("resources"),
        {"method": "notifications/resources/list_changed", "params": {}},
    ),
    "resourceSubscriptions": (
        ResourceUpdated("demo://note"),
        {"method": "notifications/resources/updated", "params": {"uri": "demo://note"}},
    ),
}


def listen(request_id: int | str = "listen:0", **wanted: Any) -> Json:
    return stateless(request("subscriptions/listen", request_id, notifications=wanted))


def stamped(message: Json, request_id: int | str = "listen:0") -> Json:
    return {"jsonrpc": "2.0", **message, "params": {"_meta": {ID: request_id}, **message["params"]}}


async def silent(rig: Rig) -> None:
    assert (await rig.ask(stateless(request("tools/list", "probe"))))["id"] == "probe"


@pytest.mark.parametrize("request_id", ["listen:0", 7])
async def test_the_stream_starts_with_what_will_be_told(request_id: int | str) -> None:
    acknowledged = await Rig().ask(listen(request_id, **EVERYTHING))
    expected = {"method": "notifications/subscriptions/acknowledged", "params": {"notifications": EVERYTHING}}
    assert acknowledged == stamped(expected, request_id)


@pytest.mark.parametrize("name", EVENTS)
async def test_a_listener_gets_what_it_asked_for_and_nothing_else(name: str) -> None:
    rig = Rig()
    await rig.ask(listen(**{name: EVERYTHING[name]}))
    for event, _ in EVENTS.values():
        rig.server.registry.events.publish(event)
    assert await rig.next() == stamped(EVENTS[name][1])
    await silent(rig)


async def test_an_update_of_another_uri_is_not_told() -> None:
    rig = Rig()
    await rig.ask(listen(resourceSubscriptions=["demo://note", "demo://other"]))
    rig.server.registry.resource_updated("demo://blob")
    await silent(rig)


async def test_an_empty_filter_is_acknowledged_and_hears_nothing() -> None:
    rig = Rig()
    assert (await rig.ask(listen()))["params"]["notifications"] == {}
    for event, _ in EVENTS.values():
        rig.server.registry.events.publish(event)
    await silent(rig)


async def test_two_listeners_on_one_link_are_told_apart_by_their_ids() -> None:
    rig = Rig()
    await rig.ask(listen("a", toolsListChanged=True))
    await rig.ask(listen("b", toolsListChanged=True))
    rig.server.registry.remove_tools("demo_echo")
    told = [await rig.next(), await rig.next()]
    assert {message["params"]["_meta"][ID] for message in told} == {"a", "b"}


async def test_a_session_and_a_listener_on_one_link_are_both_told() -> None:
    rig = await ready()
    await rig.ask(listen(toolsListChanged=True))
    rig.server.registry.remove_tools("demo_echo")
    told = [await rig.next(), await rig.next()]
    assert sorted("params" in message for message in told) == [False, True]


async def test_when_the_server_ends_a_listener_gets_its_result() -> None:
    rig = Rig()
    await rig.ask(listen(toolsListChanged=True))
    rig.server.close()
    expected = {"resultType": "complete", "_meta": {ID: "listen:0"}}
    assert await rig.next() == {"jsonrpc": "2.0", "id": "listen:0", "result": expected}
    assert not rig.server.listening


async def test_a_cancelled_listener_hears_no_more_and_gets_no_reply() -> None:
    rig = Rig()
    await rig.ask(listen(toolsListChanged=True))
    rig.send(notification("notifications/cancelled", requestId="listen:0"))
    rig.server.registry.remove_tools("demo_echo")
    await silent(rig)
    assert not rig.server.listening
    assert not rig.wire.session.running


async def test_the_end_of_the_link_ends_its_listeners() -> None:
    rig = Rig()
    await rig.ask(listen(toolsListChanged=True))
    rig.server.close_session(rig.wire.session)
    assert not rig.server.listening


async def test_an_id_is_in_use_while_its_listener_lives() -> None:
    rig = Rig()
    await rig.ask(listen(toolsListChanged=True))
    assert (await rig.ask(listen(toolsListChanged=True)))["error"]["code"] == -32600


@pytest.mark.parametrize("junk", [[], 5, {"toolsListChanged": "yes"}, {"resourceSubscriptions": "demo://note"}, None])
async def test_a_filter_of_the_wrong_shape_is_refused(junk: Any) -> None:
    rig = Rig()
    reply = await rig.ask(stateless(request("subscriptions/listen", notifications=junk)))
    assert reply["error"]["code"] == -32602
    assert not rig.server.listening


async def test_a_missing_filter_is_refused_and_unknown_kinds_are_ignored() -> None:
    rig = Rig()
    assert (await rig.ask(stateless(request("subscriptions/listen"))))["error"]["code"] == -32602
    acknowledged = await rig.ask(listen(toolsListChanged=True, weatherChanged=True))
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
