"""The registry keeps what was added, counts changes and tells whoever listens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dari.core.content import PromptMessage
from dari.core.context import Context
from dari.core.events import Event, EventBus, ListChanged, ResourceUpdated
from dari.core.prompt import Prompt
from dari.core.registry import Registry
from dari.core.resource import Resource, ResourceTemplate
from dari.core.tool import tools_of
from tests.support.typed_tools import Kit


async def text(context: Context, values: dict[str, str] | None = None) -> str:
    return ""


async def messages(context: Context, given: dict[str, str]) -> list[PromptMessage]:
    return []


CHANGES: list[tuple[str, Callable[[Registry], None]]] = [
    ("tools", lambda registry: registry.add_tools(*tools_of(Kit()))),
    ("tools", lambda registry: registry.add_toolkit(Kit())),
    ("resources", lambda registry: registry.add_resource(Resource("demo://x", "x", text))),
    ("resources", lambda registry: registry.add_template(ResourceTemplate("demo://{x}", "x", text))),
    ("prompts", lambda registry: registry.add_prompt(Prompt("p", messages))),
    ("tools", lambda registry: registry.remove_tools("kit_plain")),
    ("resources", lambda registry: registry.remove_resource("demo://x")),
    ("prompts", lambda registry: registry.remove_prompt("p")),
]


@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_each_change_is_counted_and_told_once(kind: str, change: Callable[[Registry], None]) -> None:
    registry, seen = Registry(), list[Event]()
    registry.events.subscribe(seen.append)
    before = registry.version
    change(registry)
    assert registry.version == before + 1
    assert seen == [ListChanged(kind)]  # type: ignore[arg-type]


def test_what_was_added_can_be_removed_again() -> None:
    registry = Registry()
    for _, change in CHANGES[1:]:
        change(registry)
    assert "kit_plain" not in registry.tools
    assert len(registry.tools) == len(tools_of(Kit())) - 1
    assert (registry.resources, registry.prompts) == ({}, {})
    assert list(registry.templates) == ["demo://{x}"]


def test_an_update_of_a_resource_changes_no_list() -> None:
    registry, seen = Registry(), list[Event]()
    registry.events.subscribe(seen.append)
    registry.resource_updated("demo://x")
    assert seen == [ResourceUpdated("demo://x")]
    assert registry.version == 0


def test_a_listener_that_stopped_hears_nothing_and_may_stop_twice() -> None:
    events, first, second = EventBus[Event](), list[Event](), list[Event]()
    stop = events.subscribe(first.append)
    events.subscribe(second.append)
    events.publish(ListChanged("tools"))
    stop()
    stop()
    events.publish(ListChanged("prompts"))
    assert first == [ListChanged("tools")]
    assert second == [ListChanged("tools"), ListChanged("prompts")]


def test_a_listener_may_stop_while_it_is_told() -> None:
    events, seen = EventBus[Event](), list[Event]()

    def once(event: Event) -> None:
        seen.append(event)
        stop()

    stop = events.subscribe(once)
    events.subscribe(seen.append)
    events.publish(ListChanged("tools"))
    events.publish(ListChanged("tools"))
    assert len(seen) == 3


def test_one_function_may_listen_twice() -> None:
    events, seen = EventBus[Event](), list[Event]()
    events.subscribe(seen.append)
    stop = events.subscribe(seen.append)
    stop()
    events.publish(ListChanged("tools"))
    assert len(seen) == 1
