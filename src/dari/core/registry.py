"""Everything a server offers, in one place; listeners hear of changes.

An `Offer` is what another server offers through ours: replaced as a whole when it changes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dari.core.events import Event, EventBus, ListChanged, ListKind, ResourceUpdated
from dari.core.prompt import Prompt
from dari.core.resource import Resource, ResourceTemplate, closeness
from dari.core.tool import Tool, Toolkit, tools_of
from dari.errors import Conflict

if TYPE_CHECKING:
    from dari.core.audit.writer import RecordWriter


@dataclass(frozen=True, slots=True)
class Offer:
    tools: Sequence[Tool] = ()
    prompts: Sequence[Prompt] = ()
    resources: Sequence[Resource] = ()
    templates: Sequence[ResourceTemplate] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    """What each server of the tools is for, by its name; tools are found by it."""


def is_same_listing(
    before: Sequence[Tool | Prompt | Resource | ResourceTemplate],
    after: Sequence[Tool | Prompt | Resource | ResourceTemplate],
) -> bool:
    """Whether a client that listed one would see no difference in the other."""
    return len(before) == len(after) and all(
        old is new or old.listing() == new.listing() for old, new in zip(before, after, strict=True)
    )


Watch = Callable[[str, bool], Awaitable[None] | None]
"""Called with a URI, and whether it has subscribers now."""


class Registry:
    """Tools, resources, templates and prompts by name, in the order they were added; other servers' offers come last.

    `version` counts changes, so that what was encoded from it can be cached.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._deferred: list[Callable[[], Iterable[Tool]]] = []
        self._resources: dict[str, Resource] = {}
        self._templates: dict[str, ResourceTemplate] = {}
        self._prompts: dict[str, Prompt] = {}
        self._offers: dict[str, Offer] = {}
        self._order: tuple[str, ...] = ()
        self._all_tools: dict[str, Tool] | None = None
        self._interests: Counter[str] = Counter()
        self.resources: Mapping[str, Resource] = self._resources
        self.templates: Mapping[str, ResourceTemplate] = self._templates
        self.prompts: Mapping[str, Prompt] = self._prompts
        self.events: EventBus[Event] = EventBus()
        self.version = 0
        self.guidance = ""
        """What the offers add to the server's instructions."""
        self.may_grow = False
        """Resources and prompts may come later, so they are announced before there are any."""
        self.settle: Callable[[ListKind], Coroutine[Any, Any, None] | None] | None = None
        """What a list has to wait for, for a short time, so that a client that lists only once sees everything."""
        self.refreshers: list[Callable[[ListKind], Coroutine[Any, Any, None] | None]] = []
        """Asked before a list is shown, like `settle`, which belongs to the servers of others."""
        self.watches: list[Watch] = []
        self.tool_fallbacks: dict[str, Callable[[str], Tool | None]] = {}
        """Asked for a tool that is not listed: one that may not be called answers a call with the reason."""
        self.fallbacks: dict[str, Callable[[str], Resource | None]] = {}
        """By owner: who may know a URI that no list names."""
        self.on_close: list[Callable[[], None]] = []
        self.call_log: Callable[[], RecordWriter | None] | None = None
        """Where calls of its tools are recorded; None: nowhere. Asked with each call: a log may open with the first."""

    def close(self) -> None:
        """End what keeps it up to date; it serves no client any more."""
        for end in self.on_close:
            end()
        self.on_close.clear()

    @property
    def tools(self) -> Mapping[str, Tool]:
        merged = self._all_tools
        if merged is None or self._deferred:
            merged = self._all_tools = self._merged_tools()
        return merged

    @property
    def offers(self) -> Mapping[str, Offer]:
        """What other servers offer, by owner, in their order."""
        known = [owner for owner in self._order if owner in self._offers]
        return {owner: self._offers[owner] for owner in (*known, *(o for o in self._offers if o not in self._order))}

    def own_tools(self) -> list[Tool]:
        """Our own tools, without those of other servers."""
        return [tool for name, tool in self.tools.items() if name in self._tools]

    def defer(self, make: Callable[[], Iterable[Tool]]) -> None:
        """Tools that are made when tools are first asked for: to import a toolkit takes longer than a handshake."""
        self._deferred.append(make)

    def add_toolkit(self, toolkit: Toolkit) -> None:
        self.add_tools(*tools_of(toolkit))

    def add_tools(self, *tools: Tool) -> None:
        self._tools.update(self._checked(tools))
        self._changed("tools")

    def remove_tools(self, *names: str) -> None:
        self._make_deferred()
        for name in names:
            self._tools.pop(name, None)
        self._changed("tools")

    def add_resource(self, resource: Resource) -> None:
        self._resources[resource.uri] = resource
        self._changed("resources")

    def remove_resource(self, uri: str) -> None:
        self._resources.pop(uri, None)
        self._changed("resources")

    def add_template(self, template: ResourceTemplate) -> None:
        self._templates[template.uri_template] = template
        self._changed("resources")

    def add_prompt(self, prompt: Prompt) -> None:
        self._prompts[prompt.name] = prompt
        self._changed("prompts")

    def remove_prompt(self, name: str) -> None:
        self._prompts.pop(name, None)
        self._changed("prompts")

    def order_offers(self, owners: Sequence[str]) -> None:
        """The order in which offers are listed, independent of which came first."""
        if tuple(owners) != self._order:
            self._order = tuple(owners)
            if len(self._offers) > 1:
                self._changed("tools")
                self._changed("prompts")
                self._changed("resources")

    def offer(self, owner: str, offer: Offer | None) -> None:
        """Replace everything of one owner; None takes it away. Listeners get one event for each kind that changed.

        A name in use stays with its owner: our own tools first, then by the order of the owners.
        """
        before = self._offers.get(owner, Offer())
        after = offer or Offer()
        if offer is None:
            self._offers.pop(owner, None)
        else:
            self._offers[owner] = after
        self._all_tools = None
        self._merge()
        if not is_same_listing(before.tools, after.tools):
            self._tell("tools")
        if not is_same_listing(before.prompts, after.prompts):
            self._tell("prompts")
        if not is_same_listing(before.resources, after.resources) or not is_same_listing(
            before.templates, after.templates
        ):
            self._tell("resources")

    def find_tool(self, name: str) -> Tool | None:
        """The tool of that name, or what answers a call of one that is not listed."""
        found = self.tools.get(name)
        if found is not None:
            return found
        answers = (find(name) for find in self.tool_fallbacks.values())
        return next((one for one in answers if one is not None), None)

    def find_reader(self, uri: str) -> tuple[Resource | ResourceTemplate, dict[str, str]] | None:
        """Who reads a URI: the resource of that name, the closest template, or a server that may know it."""
        resource = self.resources.get(uri)
        if resource is not None:
            return resource, {}
        fitting: list[tuple[ResourceTemplate, dict[str, str]]] = []
        for template in self.templates.values():
            values = template.match(uri)
            if values is not None and template.shown is None:
                return template, values
            if values is not None:
                fitting.append((template, values))
        if fitting:
            return max(fitting, key=lambda one: closeness(one[0].uri_template))
        for find in self.fallbacks.values():
            resource = find(uri)
            if resource is not None:
                return resource, {}
        return None

    def resource_updated(self, uri: str) -> None:
        """Announce that the contents behind a URI changed."""
        self.events.publish(ResourceUpdated(uri))

    def settling(self, kind: ListKind) -> Coroutine[Any, Any, None] | None:
        """What to wait for before the list is whole: servers that are being met, and owners that bring theirs up to
        date; None when nothing is on its way."""
        asked = [self.settle, *self.refreshers] if self.settle is not None else self.refreshers
        waiting = [each for ask in asked if (each := ask(kind)) is not None]
        return waiting[0] if len(waiting) == 1 else _all_of(waiting) if waiting else None

    def watch(self, uri: str) -> list[Awaitable[None]]:
        """Subscribe to updates of a URI; await the returned coroutine before relying on it."""
        self._interests[uri] += 1
        return self._tell_watches(uri, True) if self._interests[uri] == 1 else []

    def unwatch(self, uri: str) -> None:
        if self._interests[uri] > 1:
            self._interests[uri] -= 1
        elif self._interests.pop(uri, 0):
            self._tell_watches(uri, False)

    @property
    def interests(self) -> frozenset[str]:
        """The URIs with subscribers."""
        return frozenset(self._interests)

    def _tell_watches(self, uri: str, wanted: bool) -> list[Awaitable[None]]:
        return [waiting for watch in self.watches if (waiting := watch(uri, wanted)) is not None]

    def _make_deferred(self) -> None:
        while self._deferred:
            self._tools |= self._checked(self._deferred.pop(0)())

    def _merged_tools(self) -> dict[str, Tool]:
        self._make_deferred()
        merged = dict(self._tools)
        for offer in self.offers.values():
            for tool in offer.tools:
                merged.setdefault(tool.name, tool)
        return merged

    def _merge(self) -> None:
        resources, templates, prompts = dict(self._resources), dict(self._templates), dict(self._prompts)
        for offer in self.offers.values():
            for resource in offer.resources:
                resources.setdefault(resource.uri, resource)
            for template in offer.templates:
                templates.setdefault(template.uri_template, template)
            for prompt in offer.prompts:
                prompts.setdefault(prompt.name, prompt)
        self.resources, self.templates, self.prompts = resources, templates, prompts

    def _checked(self, tools: Iterable[Tool]) -> dict[str, Tool]:
        added: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools or tool.name in added:
                raise Conflict(f"a tool named '{tool.name}' exists already", "give one of them another prefix")
            added[tool.name] = tool
        return added

    def _changed(self, kind: ListKind) -> None:
        self._all_tools = None
        self._merge()
        self._tell(kind)

    def _tell(self, kind: ListKind) -> None:
        self.version += 1
        self.events.publish(ListChanged(kind))


async def _all_of(waiting: Iterable[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*waiting)
