"""Offers of other servers inside a registry: replaced as a whole, told once, never in the way of what is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dari.core.content import RawResult
from dari.core.events import Event, ListChanged
from dari.core.prompt import Prompt, PromptArgument
from dari.core.registry import Offer, Registry
from dari.core.resource import Resource, ResourceTemplate
from dari.core.tool import Tool
from dari.errors import InvalidInput
from tests.support.typed_tools import Kit


async def nothing(*_: Any) -> RawResult:
    raise NotImplementedError


def remote(name: str, **fields: Any) -> Tool:
    shown = {"name": name, "inputSchema": {"type": "object"}, **fields}
    return Tool(name, "", "control", {}, None, {}, nothing, shown=shown)


def resource(uri: str) -> Resource:
    return Resource(uri, uri, nothing, shown={"uri": uri, "name": uri})


def template(uri: str) -> ResourceTemplate:
    return ResourceTemplate(uri, uri, nothing, shown={"uriTemplate": uri, "name": uri})


def told(registry: Registry) -> list[Event]:
    seen: list[Event] = []
    registry.events.subscribe(seen.append)
    return seen


def test_an_offer_stands_behind_what_is_ours_and_goes_as_a_whole() -> None:
    registry = Registry()
    registry.add_toolkit(Kit())
    own = list(registry.tools)
    registry.offer("a", Offer(tools=[remote("a__x"), remote("a__y")]))
    assert list(registry.tools) == [*own, "a__x", "a__y"]
    assert [tool.name for tool in registry.own_tools()] == own
    registry.offer("a", None)
    assert list(registry.tools) == own


def test_each_kind_that_changed_is_told_once() -> None:
    registry = Registry()
    seen = told(registry)
    registry.offer(
        "a", Offer(tools=[remote("x"), remote("y")], resources=[resource("u:1")], templates=[template("u:{a}")])
    )
    assert seen == [ListChanged("tools"), ListChanged("resources")]


def test_what_looks_the_same_is_not_told_but_replaced() -> None:
    registry = Registry()
    registry.offer("a", Offer(tools=[remote("x")]))
    seen, version = told(registry), registry.version
    newer = remote("x")
    registry.offer("a", Offer(tools=[newer]))
    assert (seen, registry.version) == ([], version)
    assert registry.tools["x"] is newer
    registry.offer("a", Offer(tools=[remote("x", title="X")]))
    assert seen == [ListChanged("tools")]


def test_a_name_stays_with_whoever_has_it_first() -> None:
    registry = Registry()
    registry.add_toolkit(Kit())
    registry.order_offers(["a", "b"])
    registry.offer("b", Offer(tools=[remote("kit_plain"), remote("same", by="b")]))
    registry.offer("a", Offer(tools=[remote("same", by="a")]))
    assert registry.tools["kit_plain"].shown is None
    assert registry.tools["same"].listing()["by"] == "a"


def test_offers_are_listed_in_their_order_whoever_came_first() -> None:
    registry = Registry()
    registry.offer("b", Offer(tools=[remote("b1")]))
    registry.offer("a", Offer(tools=[remote("a1")]))
    seen = told(registry)
    registry.order_offers(["a", "b"])
    assert list(registry.tools) == ["a1", "b1"]
    assert ListChanged("tools") in seen


def test_our_own_tools_may_be_made_after_offers_came() -> None:
    registry = Registry()
    registry.defer(lambda: [remote("late")])
    registry.offer("a", Offer(tools=[remote("late", by="a"), remote("x")]))
    assert list(registry.tools) == ["late", "x"]
    assert "by" not in registry.tools["late"].listing()


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("u:one", "u:one"),
        ("own:7", "own:{id}"),
        ("u:a/b", "u:{x}"),
        ("u:deep/a", "u:deep/{x}"),
        ("u:deep/a.txt", "u:deep/{name}.txt"),
        ("v:a/b?q=1", "v:{+path}{?q}"),
        ("w:1", None),
    ],
)
def test_a_uri_finds_its_reader(uri: str, found: str | None) -> None:
    registry = Registry()
    registry.add_template(ResourceTemplate("own:{id}", "own", nothing))
    shapes = ["u:{x}", "u:deep/{x}", "u:deep/{name}.txt", "v:{+path}{?q}"]
    registry.offer("a", Offer(resources=[resource("u:one")], templates=[template(shape) for shape in shapes]))
    reader = registry.find_reader(uri)
    shown = None if reader is None else getattr(reader[0], "uri", None) or getattr(reader[0], "uri_template", None)
    assert shown == found


def test_a_template_of_another_server_cannot_keep_us_busy() -> None:
    shape = "u:" + "{a}" * 200 + "end"
    assert template(shape).match("u:" + "x" * 50_000) is None
    assert template(shape).match("u:" + "x" * 50_000 + "end") is not None


def test_a_fallback_is_asked_last() -> None:
    registry = Registry()
    asked: list[str] = []

    def find(uri: str) -> Resource | None:
        asked.append(uri)
        return resource(uri) if uri.startswith("f:") else None

    registry.fallbacks["a"] = find
    registry.offer("a", Offer(resources=[resource("f:listed")]))
    assert registry.find_reader("f:listed") is not None
    assert asked == []
    assert registry.find_reader("f:other") is not None
    assert registry.find_reader("g:other") is None


def test_interest_in_a_uri_is_told_when_it_begins_and_when_it_ends() -> None:
    registry = Registry()
    heard: list[tuple[str, bool]] = []
    watch: Callable[[str, bool], None] = lambda uri, wanted: heard.append((uri, wanted))  # noqa: E731
    registry.watches.append(watch)
    registry.watch("u:1")
    registry.watch("u:1")
    registry.unwatch("u:1")
    assert heard == [("u:1", True)]
    assert registry.interests == {"u:1"}
    registry.unwatch("u:1")
    registry.unwatch("u:1")
    assert heard == [("u:1", True), ("u:1", False)]


def test_a_prompt_of_another_server_is_held_to_what_it_requires_only() -> None:
    prompt = Prompt("p", nothing, arguments=[PromptArgument("a", required=True)], shown={"name": "p"})
    prompt.check({"a": "1", "more": "2"})
    with pytest.raises(InvalidInput, match="'a'"):
        prompt.check({"more": "2"})
