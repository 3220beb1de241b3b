"""The resources of panes in another process: listed as they are when somebody asks, and followed from then on.

Nothing here starts a daemon: where none runs there are no panes, and the list is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from dari.core.events import ListKind
from dari.core.registry import Registry
from dari.errors import DariError
from dari.terminal.tools.templates import PaneTexts

if TYPE_CHECKING:
    from dari.terminal.service import TerminalService

FOLLOW_S = 300.0
_PREFIX = "crux://pane/"


class FollowedResources:
    """Of one registry. `is_up` says whether the daemon answers; `terminal` must not start it."""

    def __init__(self, registry: Registry, terminal: Callable[[], TerminalService], is_up: Callable[[], bool]) -> None:
        self._registry = registry
        self._terminal = terminal
        self._is_up = is_up
        self._texts = PaneTexts(terminal)
        self._listed: set[str] = set()
        self._version = 0
        self._following: asyncio.Task[None] | None = None
        registry.may_grow = True
        registry.refreshers.append(self._refresh)
        registry.watches.append(self._watch)

    def _refresh(self, kind: ListKind) -> Coroutine[Any, Any, None] | None:
        if kind != "resources":
            return None
        if not self._is_up():
            self._show(set())
            return None
        return self._follow()

    def _watch(self, uri: str, wanted: bool) -> Coroutine[Any, Any, None] | None:
        return self._follow() if wanted and uri.startswith(_PREFIX) and self._is_up() else None

    async def _follow(self) -> None:
        """Bring the list up to date, and keep it so while the daemon runs."""
        try:
            await self._look(0.0)
        except DariError:
            self._show(set())
            return
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._go_on())

    async def _go_on(self) -> None:
        try:
            while True:
                await self._look(FOLLOW_S)
        except DariError:  # it has ended, and its panes with it
            self._show(set())

    async def _look(self, timeout_s: float) -> None:
        found = await self._terminal().changes.changes(self._version, timeout_s)
        known, self._version = self._version, found.version
        self._show(set(found.panes))
        if known:
            from dari.terminal.tools.resources import uris_of

            wanted = self._registry.interests
            for uri in (uri for pane_id in found.changed for uri in uris_of(pane_id)):
                if uri in wanted:
                    self._registry.resource_updated(uri)

    def _show(self, panes: set[str]) -> None:
        if panes == self._listed:
            return
        from dari.terminal.tools.resources import resources_of, uris_of

        gone, self._listed = self._listed - panes, panes
        for uri in (uri for pane_id in gone for uri in uris_of(pane_id)):
            self._registry.remove_resource(uri)
        for pane_id in sorted(panes, key=lambda each: (len(each), each)):
            for resource in resources_of(pane_id, self._texts):
                if resource.uri not in self._registry.resources:
                    self._registry.add_resource(resource)
