"""Lists over all their pages, and what the list of tools says about headers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Raw

from dari.core.header_params import Path, find_header_params
from dari.errors import Failed, InvalidInput
from dari.mcp.client.decode import decode_members, read
from dari.mcp.client.errors import RemoteError
from dari.mcp.client.results import ListResult, RemoteTool
from dari.mcp.client.versions import parameter_headers
from dari.rpc.codec import METHOD_NOT_FOUND, UNREADABLE, decode_any

Kind = Literal["tools", "resources", "resourceTemplates", "prompts"]
Ask = Callable[[str, bytes], Awaitable[Raw]]

METHODS: dict[Kind, str] = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}
MAX_PAGES = 1000
MAX_ITEMS = 10_000
MAX_BYTES = 32 * 1024 * 1024
MAX_TTL_MS = 1 << 53
MAX_COMMAS = 500_000
"""On one page: an array has at most one item more than commas, and to count them costs nothing."""
_REPORT = "report it to the server's author"
_log = logging.getLogger("dari.mcp.client")


async def fetch_list(kind: Kind, ask: Ask) -> ListResult:
    """Every page; a server that offers no such list has an empty one."""
    method = METHODS[kind]
    items: list[Raw] = []
    ttls_ms: list[int] = []
    scope: str | None = None
    cursors: set[bytes] = set()
    cursor = b""
    """As the server wrote it: some give a number."""
    size_bytes = 0
    while True:
        try:
            page = await ask(method, b'{"cursor":%b}' % cursor if cursor else b"{}")
        except RemoteError as error:
            if error.remote_code == METHOD_NOT_FOUND and not cursor:
                return ListResult([])
            raise
        size_bytes += len(bytes(page))
        if size_bytes > MAX_BYTES or bytes(page).count(b",") > MAX_COMMAS:
            raise _too_much(method, f"{size_bytes:,} bytes")
        members = _members(page, method)
        items += read(members.get(kind, b"[]"), list[Raw], f"answer to {method}")
        if len(items) > MAX_ITEMS:
            raise _too_much(method, f"{len(items):,} items")
        ttl_ms, scope = _value(members, "ttlMs"), _value(members, "cacheScope") or scope
        if isinstance(ttl_ms, int | float):
            ttls_ms.append(min(max(0, int(ttl_ms)), MAX_TTL_MS))
        cursor = bytes(members["nextCursor"]) if _value(members, "nextCursor") else b""
        if not cursor:
            return ListResult(items, min(ttls_ms) if ttls_ms else None, scope)
        if cursor in cursors or len(cursors) >= MAX_PAGES:
            shown = cursor[:40].decode("utf-8", "replace")
            raise Failed(f"{method} never ends: cursor {shown} came twice or after {MAX_PAGES} pages", _REPORT)
        cursors.add(cursor)


class Catalogue:
    """Which arguments of which tool stand in headers too. Only HTTP of the stateless era asks."""

    def __init__(self) -> None:
        self._mirrored: dict[str, dict[str, Path]] = {}
        self._refused: dict[str, str] = {}

    def learn(self, tools: list[Raw]) -> list[Raw]:
        """Take a whole list in; returns what may be called. MCP: a tool with a bad annotation is dropped."""
        self._mirrored.clear()
        self._refused.clear()
        kept = []
        for raw in tools:
            tool = read(raw, RemoteTool, "list of tools")
            try:
                self._mirrored[tool.name] = find_header_params(tool.input_schema)
                kept.append(raw)
            except ValueError as error:
                self._refused[tool.name] = str(error)
                _log.warning("transport=client event=tool_dropped %r: %s", tool.name, error)
        return kept

    def headers(self, name: str, arguments: bytes) -> bytes:
        if name in self._refused:
            raise InvalidInput(
                f"tool '{name}' has a schema that MCP forbids: {self._refused[name]}", "use another tool"
            )
        mirrored = self._mirrored.get(name)
        return parameter_headers(mirrored, decode_any(arguments)) if mirrored else b""


def _too_much(method: str, given: str) -> Failed:
    limit = f"at most {MAX_ITEMS:,} items in {MAX_BYTES:,} bytes"
    return Failed(f"the server's answer to {method} must have {limit}, got {given}", "ask its author for less at once")


def _members(page: Raw, method: str) -> dict[str, Raw]:
    try:
        return decode_members(page)
    except UNREADABLE as error:
        raise Failed(f"the server's answer to {method} must be an object: {error}", _REPORT) from None


def _value(members: dict[str, Raw], key: str) -> Any:
    try:
        return decode_any(members[key]) if key in members else None
    except UNREADABLE:  # a number that no type holds
        return None
