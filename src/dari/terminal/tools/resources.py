"""`crux://pane/{id}/scrollback` and `crux://pane/{id}/state`: listed for each pane, with a notice when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from dari.core.context import Context
from dari.core.events import ListKind
from dari.core.registry import Registry
from dari.core.resource import Completer, Resource, ResourceTemplate
from dari.errors import DariError

if TYPE_CHECKING:  # the hub offers panes that cruxd has: it needs no engine of its own
    from dari.terminal.multiplexer import Change, Multiplexer
    from dari.terminal.service import TerminalService

SCROLLBACK, STATE = "crux://pane/{id}/scrollback", "crux://pane/{id}/state"


class PaneTexts:
    """What the two resources of a pane hold. The service is asked for when somebody reads, not before."""

    def __init__(self, terminal: Callable[[], TerminalService]) -> None:
        self._terminal = terminal

    def add_templates(self, registry: Registry) -> None:
        complete: dict[str, Completer] = {"id": self._ids}
        shows = "What a pane shows and has shown"
        registry.add_template(
            ResourceTemplate(
                SCROLLBACK, "scrollback", self.scrollback, shows, "text/plain", output="as_is", completers=complete
            )
        )
        registry.add_template(
            ResourceTemplate(
                STATE, "state", self.state, "Size, cursor, program", "application/json", completers=complete
            )
        )

    async def scrollback(self, context: Context, values: dict[str, str]) -> str:
        from dari.terminal.tools.output import MAX_TOKENS, limit_output

        found = await self._terminal().screen.get_raw_text(values["id"], True)
        return limit_output(found.text, MAX_TOKENS).text

    async def state(self, context: Context, values: dict[str, str]) -> str:
        import msgspec

        from dari.text.sanitize import sanitize_value_for_terminal

        found = await self._terminal().screen.get_pane_state(values["id"])
        return msgspec.json.encode(sanitize_value_for_terminal(msgspec.to_builtins(found))).decode()

    async def _ids(self, typed: str, known: dict[str, str]) -> list[str]:
        panes = (await self._terminal().panes.list_panes()).panes
        return [pane.id for pane in panes if pane.id.startswith(typed)]


QUIET_S = 0.1
"""Output comes in many pieces; subscribers hear of them together."""


def add_resources(registry: Registry, terminal: TerminalService, multiplexer: Multiplexer) -> None:
    """Two resources for each pane while it is there, and their templates."""
    Resources(registry, terminal, multiplexer)


class Resources:
    def __init__(self, registry: Registry, terminal: TerminalService, multiplexer: Multiplexer) -> None:
        from dari.terminal.multiplexer import PaneChanged, PaneGone, PaneOpened

        self._registry = registry
        self._texts = PaneTexts(lambda: terminal)
        self._changed: set[str] = set()
        self._handlers = {PaneOpened: self._add, PaneGone: self._remove, PaneChanged: self._note}
        registry.may_grow = True
        self._texts.add_templates(registry)
        for pane_id in multiplexer.panes:
            self._add(pane_id)
        multiplexer.changes.subscribe(self._hear)

    def _hear(self, change: Change) -> None:
        handle = self._handlers.get(type(change))
        if handle is not None:
            handle(change.pane_id)

    def _remove(self, pane_id: str) -> None:
        for uri in uris_of(pane_id):
            self._registry.remove_resource(uri)

    def _add(self, pane_id: str) -> None:
        for resource in resources_of(pane_id, self._texts):
            self._registry.add_resource(resource)

    def _note(self, pane_id: str) -> None:
        wanted = self._registry.interests
        uris = [uri for uri in uris_of(pane_id) if uri in wanted] if wanted else []
        if not uris:
            return
        if not self._changed:
            asyncio.get_running_loop().call_later(QUIET_S, self._tell)
        self._changed.update(uris)

    def _tell(self) -> None:
        changed, self._changed = self._changed, set()
        for uri in sorted(changed):
            self._registry.resource_updated(uri)


def resources_of(pane_id: str, texts: PaneTexts) -> tuple[Resource, Resource]:
    scrollback, state = uris_of(pane_id)
    values = {"id": pane_id}
    return (
        Resource(
            scrollback,
            f"Pane {pane_id} Scrollback Buffer",
            lambda context: texts.scrollback(context, values),
            "What the pane shows and has shown",
            "text/plain",
            output="as_is",
        ),
        Resource(
            state,
            f"Pane {pane_id} State",
            lambda context: texts.state(context, values),
            "Size, cursor, program",
            "application/json",
        ),
    )


def uris_of(pane_id: str) -> tuple[str, str]:
    return SCROLLBACK.replace("{id}", pane_id), STATE.replace("{id}", pane_id)


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

    def close(self) -> None:
        """The registry is not served any more."""
        if self._following is not None:
            self._following.cancel()

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
            wanted = self._registry.interests
            for uri in (uri for pane_id in found.changed for uri in uris_of(pane_id)):
                if uri in wanted:
                    self._registry.resource_updated(uri)

    def _show(self, panes: set[str]) -> None:
        if panes == self._listed:
            return

        gone, self._listed = self._listed - panes, panes
        for uri in (uri for pane_id in gone for uri in uris_of(pane_id)):
            self._registry.remove_resource(uri)
        for pane_id in sorted(panes, key=lambda each: (len(each), each)):
            for resource in resources_of(pane_id, self._texts):
                if resource.uri not in self._registry.resources:
                    self._registry.add_resource(resource)
