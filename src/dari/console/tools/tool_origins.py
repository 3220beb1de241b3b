"""`dari_tool_origins`: where the listed tools come from, which `tools/list` does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dari.core.scopes import ADMIN
from dari.core.tool import tool

if TYPE_CHECKING:
    from dari.bridge.view import ServerView
    from dari.core.registry import Registry

MAX_COMPLAINTS = 200


class ToolOrigin(Struct):
    """A listed tool: its name here, the server it is of (empty: our own) and its name there."""

    name: str
    server: str
    tool: str
    scope: str


class ListComplaint(Struct):
    """Something in a server's list that cannot be used, or only in part."""

    server: str
    reason: str


class ToolOrigins(Struct):
    tools: list[ToolOrigin]
    left_out: list[ListComplaint]
    held: list[ToolOrigin]
    """Tools that a server lists and that are not offered: they changed since they were pinned, or the profile hides
    them."""


class ToolOriginTools:
    """The tool `dari_tool_origins`."""

    prefix = "dari_tool"

    def __init__(self, view: ServerView, registry: Registry) -> None:
        self._view = view
        self._registry = registry

    @tool(scope=ADMIN, read_only=True)
    async def origins(self) -> ToolOrigins:
        """Tell of each listed tool which server it is of and its name there, and what servers listed wrongly."""
        listed = [
            ToolOrigin(name, one.server, one.own_name or name, one.scope) for name, one in self._registry.tools.items()
        ]
        upstreams = self._view.upstreams()
        left_out = [ListComplaint(one.id, line) for one in upstreams for line in one.complaints()]
        held = [ToolOrigin("", one.id, name, "") for one in upstreams for name in one.unlisted_tools()]
        return ToolOrigins(listed, left_out[:MAX_COMPLAINTS], held[:MAX_COMPLAINTS])
