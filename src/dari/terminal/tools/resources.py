"""`crux://pane/{id}/scrollback` and `crux://pane/{id}/state`: listed for each pane, told of when they change."""

from __future__ import annotations

import asyncio

import msgspec

from dari.core.context import Context
from dari.core.registry import Registry
from dari.core.resource import Completer, Resource, Template
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged, PaneGone, PaneOpened
from dari.terminal.service import TerminalService
from dari.terminal.tools.presentation import MOST_TOKENS, shown

QUIET_S = 0.1
"""Output comes in many pieces; subscribers hear of them together."""
SCROLLBACK, STATE = "crux://pane/{id}/scrollback", "crux://pane/{id}/state"


def add_resources(registry: Registry, terminal: TerminalService, multiplexer: Multiplexer) -> None:
    """Two resources for each pane while it is there, and their templates."""
    Resources(registry, terminal, multiplexer)


class Resources:
    def __init__(self, registry: Registry, terminal: TerminalService, multiplexer: Multiplexer) -> None:
        self._registry = registry
        self._reading = terminal.reading
        self._panes = multiplexer.panes
        self._changed: set[str] = set()
        registry.may_grow = True
        complete: dict[str, Completer] = {"id": self._ids}
        registry.add_template(
            Template(
                SCROLLBACK,
                "scrollback",
                self._read_scrollback,
                "What a pane shows and has shown",
                "text/plain",
                completers=complete,
            )
        )
        registry.add_template(
            Template(STATE, "state", self._read_state, "Size, cursor, program", "application/json", completers=complete)
        )
        for pane_id in multiplexer.panes:
            self._add(pane_id)
        multiplexer.changes.subscribe(self._hear)

    async def _ids(self, typed: str, known: dict[str, str]) -> list[str]:
        return [pane_id for pane_id in self._panes if pane_id.startswith(typed)]

    async def _read_scrollback(self, context: Context, values: dict[str, str]) -> str:
        found = await self._reading.get_raw_text(values["id"], True)
        return shown(found.text, MOST_TOKENS).text

    async def _read_state(self, context: Context, values: dict[str, str]) -> str:
        return msgspec.json.encode(await self._reading.get_pane_state(values["id"])).decode()

    def _hear(self, change: Change) -> None:
        if isinstance(change, PaneOpened):
            self._add(change.pane_id)
        elif isinstance(change, PaneGone):
            for uri in _uris(change.pane_id):
                self._registry.remove_resource(uri)
        elif isinstance(change, PaneChanged):
            self._note(change.pane_id)

    def _add(self, pane_id: str) -> None:
        scrollback, state = _uris(pane_id)
        values = {"id": pane_id}
        self._registry.add_resource(
            Resource(
                scrollback,
                f"Pane {pane_id} scrollback",
                lambda context: self._read_scrollback(context, values),
                "What the pane shows and has shown",
                "text/plain",
            )
        )
        self._registry.add_resource(
            Resource(
                state,
                f"Pane {pane_id} state",
                lambda context: self._read_state(context, values),
                "Size, cursor, program",
                "application/json",
            )
        )

    def _note(self, pane_id: str) -> None:
        uris = [uri for uri in _uris(pane_id) if uri in self._registry.interests]
        if not uris:
            return
        if not self._changed:
            asyncio.get_running_loop().call_later(QUIET_S, self._tell)
        self._changed.update(uris)

    def _tell(self) -> None:
        changed, self._changed = self._changed, set()
        for uri in sorted(changed):
            self._registry.resource_updated(uri)


def _uris(pane_id: str) -> tuple[str, str]:
    return SCROLLBACK.replace("{id}", pane_id), STATE.replace("{id}", pane_id)
