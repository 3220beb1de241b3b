"""The items of a list as a server just gave it: bounded before they are read, and read in slices."""

from __future__ import annotations

import logging
from typing import Any

from msgspec import Struct

from dari.bridge.trust.items import ItemKind, ListedItem, item_of
from dari.bridge.upstream.memory import JsonObject, ListName
from dari.core.slices import sliced
from dari.errors import Failed, InvalidInput
from dari.log import format_event
from dari.mcp.client.results import ListResult
from dari.rpc.codec import UNREADABLE, decode_any
from dari.text.sanitize import sanitize_value_for_model

MAX_ITEMS: dict[ListName, int] = {"tools": 2_000, "prompts": 2_000, "resourceTemplates": 2_000, "resources": 10_000}
MAX_LIST_BYTES = 8 * 1024 * 1024
MAX_ITEM_BYTES = 256 * 1024
MAX_DEPTH = 100

_PINNED: dict[ListName, ItemKind] = {"tools": "tool", "prompts": "prompt", "resourceTemplates": "template"}
_log = logging.getLogger("dari.bridge")


class Prepared(Struct, frozen=True):
    """What takes long to find out about an item. Holds the item, so that its `id` stays its own."""

    listed: JsonObject
    shown: JsonObject
    """As a model may see it."""
    pinned: ListedItem | None
    """As it is compared with its pin; None for what is not pinned."""


async def prepared_items(server: str, name: ListName, listing: ListResult) -> list[Prepared]:
    """Every item that can be used. Raises Failed where there are too many; one that is too large is left out."""
    total_bytes = sum(len(bytes(raw)) for raw in listing.items)
    if len(listing.items) > MAX_ITEMS[name] or total_bytes > MAX_LIST_BYTES:
        raise Failed(
            f"a server may list {MAX_ITEMS[name]:,} {name} in {MAX_LIST_BYTES:,} bytes, "
            f"{server} lists {len(listing.items):,} in {total_bytes:,}",
            "ask its author for a server with fewer, or for an option that chooses some",
        )
    found: list[Prepared] = []
    async for raw in sliced(listing.items):
        if len(bytes(raw)) > MAX_ITEM_BYTES:
            _left_out(server, name, f"an item of {len(bytes(raw)):,} bytes, {MAX_ITEM_BYTES:,} are allowed")
            continue
        try:
            value = decode_any(raw)
        except UNREADABLE as error:
            _left_out(server, name, f"an item that cannot be read: {error}")
            continue
        if isinstance(value, dict):
            if is_deep(value):
                _left_out(server, name, f"an item nested deeper than {MAX_DEPTH} levels")
            else:
                found.append(_prepared(name, value))
    return found


def is_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether a JSON value is nested deeper than code that calls itself should follow."""
    level = [value]
    for _ in range(limit):
        level = [
            each
            for one in level
            for each in (one.values() if isinstance(one, dict) else one)
            if isinstance(each, dict | list)
        ]
        if not level:
            return False
    return True


def _prepared(name: ListName, listed: JsonObject) -> Prepared:
    kind, pinned = _PINNED.get(name), None
    if kind is not None:
        try:
            pinned = item_of(kind, listed)
        except InvalidInput:
            pinned = None  # the comparison says so of the same item
    return Prepared(listed, sanitize_value_for_model(listed)[0], pinned)


def _left_out(server: str, name: ListName, what: str) -> None:
    _log.warning(format_event("bridge", "list", f"server={server} list={name} left out {what}"))
