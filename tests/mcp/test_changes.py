"""Sessions are told of changed lists, and of the resources they subscribed to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dari.core.content import PromptMessage
from dari.core.context import Context
from dari.core.prompt import Prompt
from dari.core.registry import Registry
from dari.core.resource import Resource
from tests.support.mcp_server import VERSIONS, Rig, ready, request
from tests.support.wire import MemoryWire, initialize


async def text(context: Context) -> str:
    return ""


async def messages(context: Context, given: dict[str, str]) -> list[PromptMessage]:
    return []


CHANGES: list[tuple[str, Callable[[Registry], None]]] = [
    ("tools", lambda registry: registry.remove_tools("demo_echo")),
    ("resources", lambda registry: registry.add_resource(Resource("demo://new", "new", text))),
    ("resources", lambda registry: registry.remove_resource("demo://note")),
    ("prompts", lambda registry: registry.add_prompt(Prompt("new", messages))),
    ("prompts", lambda registry: registry.remove_prompt("letter")),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "change"), CHANGES)
async def test_a_session_is_told_that_a_list_changed(
    version: str, kind: str, change: Callable[[Registry], None]
) -> None:
    rig = await ready(version)
    change(rig.server.registry)
    assert await rig.next() == {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
    await rig.quiet()


async def test_every_session_is_told_and_only_once_each() -> None:
    rig = await ready()
    other = MemoryWire(rig.server)
    await other.ask(initialize("2024-11-05"))
    rig.server.registry.remove_tools("demo_echo")
    for wire in (rig.wire, other):
        assert wire.messages.get_nowait()["method"] == "notifications/tools/list_changed"
        assert wire.messages.empty()


async def test_a_link_that_has_not_initialized_is_told_nothing() -> None:
    rig = Rig()
    rig.server.registry.remove_tools("demo_echo")
    rig.server.registry.resource_updated("demo://note")
    await rig.quiet()


async def test_a_closed_session_is_told_nothing() -> None:
    rig = await ready()
    rig.server.close_session(rig.wire.session)
    rig.server.registry.remove_tools("demo_echo")
    assert rig.wire.messages.empty()
    assert not rig.server.sessions


async def test_an_update_goes_to_those_who_subscribed_to_that_uri() -> None:
    rig = await ready()
    other = MemoryWire(rig.server)
    await other.ask(initialize())
    assert (await rig.ask(request("resources/subscribe", uri="demo://note")))["result"] == {}
    await other.ask(request("resources/subscribe", uri="demo://blob"))
    rig.server.registry.resource_updated("demo://note")
    assert await rig.next() == {
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": {"uri": "demo://note"},
    }
    assert other.messages.empty()


async def test_after_unsubscribing_updates_stop() -> None:
    rig = await ready()
    for method in ("resources/subscribe", "resources/unsubscribe", "resources/unsubscribe"):
        assert (await rig.ask(request(method, uri="demo://note")))["result"] == {}
    rig.server.registry.resource_updated("demo://note")
    await rig.quiet()


async def test_subscribing_twice_tells_once() -> None:
    rig = await ready()
    for _ in range(2):
        await rig.ask(request("resources/subscribe", uri="demo://note"))
    rig.server.registry.resource_updated("demo://note")
    await rig.next()
    await rig.quiet()


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
async def test_a_subscription_needs_a_uri(method: str) -> None:
    rig = await ready()
    assert (await rig.ask(request(method)))["error"]["code"] == -32602
