"""The lists of a server: bounded and read in slices, cached, compared with pins, filtered by the profile's rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from dari.bridge.config.profile import Pinning
from dari.bridge.schemas.checker import SchemaWorker
from dari.bridge.trust.items import ItemKind, ListedItem, ServerListing, item_of
from dari.bridge.trust.pin_diff import PinReview
from dari.bridge.trust.pins import Pins
from dari.bridge.upstream.cache import CachedList, CachedServer, JsonObject, ListName, ServerCache
from dari.bridge.upstream.resolved import ResolvedServer
from dari.bridge.upstream.tool_view import ToolView, UpstreamTool
from dari.core.events import ListKind
from dari.core.slices import sliced
from dari.errors import DariError, Failed, InvalidInput
from dari.log import format_event
from dari.mcp.client.results import ListResult
from dari.rpc.codec import UNREADABLE, decode_any
from dari.text.sanitize import sanitize_value_for_model

MAX_ITEMS: dict[ListName, int] = {"tools": 2_000, "prompts": 2_000, "resourceTemplates": 2_000, "resources": 10_000}
MAX_LIST_BYTES = 8 * 1024 * 1024
MAX_ITEM_BYTES = 256 * 1024
MAX_DEPTH = 100
MAX_COMPLAINTS = 100
QUICK_CHANGES = 10
FIRST_PAUSE_S = 0.25
MAX_PAUSE_S = 10.0
QUIET_S = 30.0
"""After ten changes of a list, each within this time after the last one, it is fetched less and less often: there are
servers that announce a change whenever they are asked for the list."""

_PINNED: dict[ListName, ItemKind] = {"tools": "tool", "prompts": "prompt", "resourceTemplates": "template"}
_log = logging.getLogger("dari.bridge")


class PreparedItem(Struct, frozen=True):
    """What takes long to find out about an item. Holds the item, so that its `id` stays its own."""

    listed: JsonObject
    shown: JsonObject
    """As a model may see it."""
    pinned: ListedItem | None
    """As it is compared with its pin; None for what is not pinned."""


async def prepared_items(
    server: str, name: ListName, listing: ListResult, complaints: list[str] | None = None
) -> list[PreparedItem]:
    """Every item that can be used. Raises Failed where there are too many; one that is too large is left out.

    `complaints` gets one line for each item that is left out or that lacks what it needs.
    """
    noted: list[str] = [] if complaints is None else complaints
    total_bytes = sum(len(bytes(raw)) for raw in listing.items)
    if len(listing.items) > MAX_ITEMS[name] or total_bytes > MAX_LIST_BYTES:
        raise Failed(
            f"a server may list {MAX_ITEMS[name]:,} {name} in {MAX_LIST_BYTES:,} bytes, "
            f"{server} lists {len(listing.items):,} in {total_bytes:,}",
            "ask its author for a server with fewer, or for an option that chooses some",
        )
    found: list[PreparedItem] = []

    def leave_out(what: str) -> None:
        _log.warning(format_event("bridge", "list", f"server={server} list={name} left out {what}"))
        _note(noted, f"{name}: left out {what}")

    async for raw in sliced(listing.items):
        if len(bytes(raw)) > MAX_ITEM_BYTES:
            leave_out(f"an item of {len(bytes(raw)):,} bytes, {MAX_ITEM_BYTES:,} are allowed")
            continue
        try:
            value = decode_any(raw)
        except UNREADABLE as error:
            leave_out(f"an item that cannot be read: {error}")
            continue
        if not isinstance(value, dict):
            _note(noted, f"{name}: an item must be an object, got {type(value).__name__}")
        elif is_deep(value):
            leave_out(f"an item nested deeper than {MAX_DEPTH} levels")
        else:
            if lacks := _lacks(name, value):
                _note(noted, f"{name}: {lacks}")
            found.append(_prepared(name, value))
    return found


def _note(noted: list[str], line: str) -> None:
    if len(noted) < MAX_COMPLAINTS:
        noted.append(line)


def _lacks(name: ListName, item: JsonObject) -> str:
    """What a listed item has to have and does not; it is used as far as it can be."""
    key = {"resources": "uri", "resourceTemplates": "uriTemplate"}.get(name, "name")
    own = item.get(key)
    if not isinstance(own, str) or not own:
        return f"an item needs a {key}, got {str(own)[:60]!r}"
    if name == "tools" and not isinstance(item.get("inputSchema"), dict):
        return f"'{own[:100]}' needs an inputSchema that is an object, got {str(item.get('inputSchema'))[:60]!r}"
    return ""


def is_deep(value: Any) -> bool:
    """Whether a JSON value is nested deeper than code that calls itself should follow."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            each
            for one in level
            for each in (one.values() if isinstance(one, dict) else one)
            if isinstance(each, dict | list)
        ]
        if not level:
            return False
    return True


def _prepared(name: ListName, listed: JsonObject) -> PreparedItem:
    kind, pinned = _PINNED.get(name), None
    if kind is not None:
        try:
            pinned = item_of(kind, listed)
        except InvalidInput:
            pinned = None  # the comparison says so of the same item
    return PreparedItem(listed, sanitize_value_for_model(listed)[0], pinned)


Fetch = Callable[[ListName], Awaitable[ListResult]]


class UpstreamLists:
    """One per server. A call reads `tools` and `visibility`; both are there at once if they were cached on disk."""

    def __init__(
        self,
        target: ResolvedServer,
        memory: ServerCache,
        pins: Pins,
        fetch: Fetch,
        on_change: Callable[[ListKind], object],
    ) -> None:
        self._target = target
        self._memory = memory
        self._pins = pins
        self._fetch = fetch
        self._on_change = on_change
        self._worker = SchemaWorker()
        self._exposure = ToolView(target.profile.tools, self._worker)
        self._fetching: dict[ListName, asyncio.Task[None]] = {}
        self._again: dict[ListName, Fetch] = {}
        self._changes: dict[ListName, tuple[int, float]] = {}
        """How many changes came one soon after the other, and when the last one did."""
        self._pausing: dict[ListName, asyncio.TimerHandle] = {}
        self._is_closed = False
        self._reviewing = asyncio.Lock()
        self._prepared: dict[ListName, dict[int, PreparedItem]] = {}
        self.complaints: dict[ListName, list[str]] = {}
        """What was wrong in the lists that were fetched since the start, for a person."""
        self.known: CachedServer = memory.load(target.memory_key)
        self.visibility = pins.visibility(target.pin_name)
        self.tools: dict[str, UpstreamTool] = {}
        self.prompts: tuple[JsonObject, ...] = ()
        self.templates: tuple[JsonObject, ...] = ()
        self.resources: tuple[JsonObject, ...] = ()
        self.instructions = ""
        if self.known.lists:
            self.review()

    def has(self, name: ListName) -> bool:
        """Whether it was ever listed."""
        return name in self.known.lists

    def is_stale(self, name: ListName) -> bool:
        listed = self.known.lists.get(name)
        if listed is None:
            return True
        ttl_ms = self._target.profile.tools_cache_ttl_ms if listed.ttl_ms is None else listed.ttl_ms
        return (self._memory.now() - listed.fetched_unix) * 1000 >= ttl_ms

    async def get(self, name: ListName, *, fresh: bool = False) -> None:
        """Make sure that the list is there. A stale one is fetched in the background."""
        if fresh or not self.has(name):
            await self.fetch(name)
        elif self.is_stale(name):
            self.fetch_later(name)

    async def fetch(self, name: ListName) -> None:
        """All who ask at the same time share one request."""
        await asyncio.shield(self._fetching.get(name) or self._begin(name))

    def fetch_later(self, name: ListName) -> None:
        if name not in self._fetching:
            self._begin(name)

    def changed(self, name: ListName, fetch: Fetch) -> None:
        """The server says so, in the session that `fetch` asks. An answer that is on its way may be older than that."""
        if not self.has(name) and name not in self._fetching:
            return
        if name in self._fetching or name in self._pausing:
            self._again[name] = fetch
        else:
            self._begin_again(name, fetch)

    def learned(self, **about: Any) -> None:
        """Remember fields of the reply to `initialize` or `server/discover`."""
        for field, value in about.items():
            setattr(self.known, field, value)
        self._memory.save(self._target.memory_key, self.known)

    def review(self) -> None:
        """Compare the known lists with the pins, and return the differences."""
        items = _pinned_items(self._prepared_by_id())
        self._show(self._pins.review(self._target.pin_name, self._listing(), mode=self._pin_mode, items=items))

    @property
    def _pin_mode(self) -> Pinning:
        return self._target.profile.tools.pin

    def _listing(self, name: ListName | None = None, items: list[JsonObject] | None = None) -> ServerListing:
        """What is known, with `items` for the list of this name."""
        tools, prompts, templates = (
            items if each == name else self._items(each) for each in ("tools", "prompts", "resourceTemplates")
        )
        return ServerListing(
            instructions=self.known.instructions or None, tools=tools, prompts=prompts, templates=templates
        )

    def _prepared_by_id(self) -> dict[int, PreparedItem]:
        return {key: one for each in self._prepared.values() for key, one in each.items()}

    def _show(self, review: PinReview) -> None:
        """Take over what a review lets a model see."""
        shown = {key: one.shown for key, one in self._prepared_by_id().items()}
        before = (self._shown_tools(), self.prompts, self.templates, self.resources)
        self.tools = {tool.name: tool for tool in self._exposure.apply(review.shown.get("tool", []), shown)}
        self.prompts = _cleaned(review.shown.get("prompt", []), shown)
        self.templates = _cleaned(review.shown.get("template", []), shown)
        self.resources = _cleaned(self._items("resources") or [], shown)
        texts = review.shown.get("instructions", [])
        self.instructions = str(sanitize_value_for_model(texts[0].get("text", ""))[0]) if texts else ""
        after = (self._shown_tools(), self.prompts, self.templates, self.resources)
        kinds = [kind for kind, old, new in zip(_ORDER, before, after, strict=True) if old != new]
        for kind in dict.fromkeys(kinds):
            self._on_change(kind)

    async def take(self, name: ListName, listing: ListResult) -> None:
        """A list as the server just gave it; it counts when it has been compared with its pins."""
        complaints: list[str] = []
        found = await prepared_items(self._target.profile.id, name, listing, complaints)
        self.complaints[name] = complaints
        prepared = {id(one.listed): one for one in found}
        items = [one.listed for one in prepared.values()]
        async with self._reviewing:
            before = self.known.lists.get(name)
            review = None
            if before is None or before.items != items:
                # The prepared items are held until the end: an id is an item's own as long as the item lives.
                every = {**self._prepared_by_id(), **prepared}
                review = await self._pins.review_in_slices(
                    self._target.pin_name,
                    lambda: self._listing(name, items),
                    mode=self._pin_mode,
                    items=_pinned_items(every),
                )
            self._prepared[name] = prepared
            self.known.lists[name] = CachedList(items, self._memory.now(), listing.ttl_ms)
            if name == "tools":
                self.known.failed_unix = 0.0
            self._memory.save(self._target.memory_key, self.known)
            if review is not None:
                self._show(review)
            else:
                self._pins.refresh()

    def unlisted_tools(self) -> list[str]:
        names = [item.get("name") for item in self._items("tools") or []]
        listed = {tool.original for tool in self.tools.values()}
        return [name for name in names if isinstance(name, str) and name not in listed]

    async def close(self) -> None:
        self._is_closed = True
        for timer in self._pausing.values():
            timer.cancel()
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._worker.close()

    def _begin(self, name: ListName, fetch: Fetch | None = None) -> asyncio.Task[None]:
        task = self._fetching[name] = asyncio.get_running_loop().create_task(self._run(name, fetch or self._fetch))
        task.add_done_callback(lambda _: self._next(name))
        task.add_done_callback(self._log_failure)
        return task

    async def _run(self, name: ListName, fetch: Fetch) -> None:
        await self.take(name, await fetch(name))

    def _next(self, name: ListName) -> None:
        self._fetching.pop(name, None)
        if name not in self._pausing and (fetch := self._again.pop(name, None)) is not None and not self._is_closed:
            self._begin_again(name, fetch)

    def _begin_again(self, name: ListName, fetch: Fetch) -> None:
        """The list has changed: fetch it now, or after a pause where that happens all the time."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        count, last_s = self._changes.get(name, (0, now_s))
        count = count + 1 if now_s - last_s < QUIET_S else 1
        self._changes[name] = count, now_s
        if count <= QUICK_CHANGES:
            self._begin(name, fetch)
            return
        self._again[name] = fetch
        pause_s = min(FIRST_PAUSE_S * 2.0 ** min(count - QUICK_CHANGES - 1, 10), MAX_PAUSE_S)
        self._pausing[name] = loop.call_later(pause_s, self._end_pause, name)

    def _end_pause(self, name: ListName) -> None:
        del self._pausing[name]
        if name not in self._fetching and (fetch := self._again.pop(name, None)) is not None:
            self._begin(name, fetch)

    def _log_failure(self, task: asyncio.Task[None]) -> None:
        """Waiting callers get the error, too; that of a background fetch is only logged."""
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, DariError):
            _log.info(format_event("bridge", "stale", f"server={self._target.profile.id} {error.message}"))
        elif error is not None:
            _log.error(format_event("bridge", "fatal", f"server={self._target.profile.id}"), exc_info=error)

    def _items(self, name: ListName) -> list[JsonObject] | None:
        listed = self.known.lists.get(name)
        return None if listed is None else listed.items

    def _shown_tools(self) -> list[JsonObject]:
        return [tool.shown for tool in self.tools.values()]


_ORDER: tuple[ListKind, ...] = ("tools", "prompts", "resources", "resources")


def _pinned_items(prepared: Mapping[int, PreparedItem]) -> dict[int, ListedItem]:
    return {key: one.pinned for key, one in prepared.items() if one.pinned is not None}


def _cleaned(items: list[JsonObject], shown: Mapping[int, JsonObject]) -> tuple[JsonObject, ...]:
    """With the pins every prompt, template and resource reaches a model through here: nothing hidden comes along."""
    return tuple(shown.get(id(item)) or sanitize_value_for_model(item)[0] for item in items)
