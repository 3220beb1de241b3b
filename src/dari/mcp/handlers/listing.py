"""The four lists, and what they may have to wait for."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from dari.core.events import ListKind
from dari.core.tool import DEFAULT_TIMEOUT_S
from dari.mcp.inflight import InflightCall
from dari.mcp.list_cache import Kind
from dari.mcp.request import Request

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
    return request.server.lists.page(kind, request.params.cursor, request.is_stateless)


def _unchanged(page: bytes) -> bytes:
    return page
