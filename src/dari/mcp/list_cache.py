"""Answers to the four list methods: encoded once per page and kept until the registry changes."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from dari.core.events import ListKind
from dari.core.registry import Registry
from dari.core.tool import DEFAULT_TIMEOUT_S
from dari.mcp.error_mapping import invalid_params
from dari.mcp.inflight import InflightCall
from dari.mcp.request import Request
from dari.mcp.versions import STATELESS, has_structured_output
from dari.rpc.codec import decode_members, encode

Kind = Literal["tools", "resources", "resourceTemplates", "prompts"]

# A client may keep a list this long; list_changed announces a change earlier.
TTL_MS = 60_000
# How a result of the stateless era begins that a client may keep, or has to fetch anew.
CACHEABLE = b'{"resultType":"complete","ttlMs":%d,"cacheScope":"private",' % TTL_MS
UNCACHEABLE = b'{"resultType":"complete","ttlMs":0,"cacheScope":"private",'


def without_caching(result: bytes) -> bytes:
    """Another server's result, with what the stateless era wants of it where that server did not say it."""
    members = decode_members(result)
    defaults = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return encode({**defaults, **members})


class ListCache:
    """Pages of what a registry offers. A cursor is the offset of the next page."""

    def __init__(self, registry: Registry, page_size: int) -> None:
        self._registry = registry
        self._page_size = page_size
        self._version = -1
        self._pages: dict[tuple[Kind, int, bool, bool], bytes] = {}

    def page(self, kind: Kind, cursor: str | None | UnsetType, version: str) -> bytes:
        """The encoded result of `<kind>/list` for this revision."""
        if self._registry.version != self._version:
            self._pages.clear()
            self._version = self._registry.version
        offset = 0 if cursor is UNSET or cursor is None else self._offset(cursor)
        stateless = version in STATELESS
        has_schemas = kind != "tools" or has_structured_output(version)
        key = (kind, offset, stateless, has_schemas)
        page = self._pages.get(key)
        if page is None:
            items = self._items(kind)
            page = self._encode(kind, items, offset, stateless, has_schemas)
            # The list may have shrunk since the cursor was made; pages past its end are not cached.
            if offset == 0 or offset < len(items):
                self._pages[key] = page
        return page

    def _encode(self, kind: Kind, items: list[Any], offset: int, stateless: bool, has_schemas: bool) -> bytes:
        shown = [item.listing() for item in items[offset : offset + self._page_size]]
        if not has_schemas:
            shown = [{name: value for name, value in one.items() if name != "outputSchema"} for one in shown]
        body: dict[str, Any] = {kind: shown}
        if offset + self._page_size < len(items):
            body["nextCursor"] = f"p{offset + self._page_size}"
        encoded = encode(body)
        return CACHEABLE + encoded[1:] if stateless else encoded

    def _items(self, kind: Kind) -> list[Any]:
        registry = self._registry
        sources: dict[Kind, Mapping[str, Any]] = {
            "tools": registry.tools,
            "resources": registry.resources,
            "resourceTemplates": registry.templates,
            "prompts": registry.prompts,
        }
        return list(sources[kind].values())

    def _offset(self, cursor: str) -> int:
        digits = cursor[1:]
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= 9
        if cursor[:1] != "p" or not is_number or int(digits) % self._page_size:
            raise invalid_params(f"cursor {cursor[:40]!r} is not one of ours", "start again without a cursor")
        return int(digits)


_KINDS: dict[Kind, ListKind] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resourceTemplates": "resources",
}


def list_page(request: Request, kind: Kind) -> bytes | None:
    """A page now, or as soon as the servers that are still being asked have answered."""
    waiting = wait_for_list(request, _KINDS[kind])
    if waiting is None:
        return _page(request, kind)

    async def later() -> bytes:
        await waiting
        return _page(request, kind)

    InflightCall(request, later(), _unchanged, DEFAULT_TIMEOUT_S)
    return None


def wait_for_list(request: Request, kind: ListKind) -> Coroutine[Any, Any, None] | None:
    """What to wait for before a name can be called unknown."""
    return request.server.registry.settling(kind)


def _page(request: Request, kind: Kind) -> bytes:
    return request.server.lists.page(kind, request.params.cursor, request.version)


def _unchanged(page: bytes) -> bytes:
    return page
