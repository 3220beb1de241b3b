"""`crux://pane/{id}/scrollback` and `crux://pane/{id}/state`: listed for each pane, told of when they change."""

from __future__ import annotations

import asyncio

from dari.core.registry import Registry
from dari.core.resource import Resource
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged, PaneGone, PaneOpened
from dari.terminal.service import TerminalService
from dari.terminal.tools.templates import SCROLLBACK, STATE, PaneTexts

QUIET_S = 0.1
"""Output comes in many pieces; subscribers hear of them together."""


def add_resources(registry: Registry, terminal: TerminalService, multiplexer: Multiplexer) -> None:
    """Two resources for each pane while it is there, and their templates."""
    Resources(registry, terminal, multiplexer)


class Resources:
    def __init__(self, registry: Registry, terminal: TerminalService, multiplexer: Multiplexer) -> None:
        self._registry = registry
        self._texts = PaneTexts(lambda: terminal)
        self._changed: set[str] = set()
        registry.may_grow = True
        self._texts.add_templates(registry)
        for pane_id in multiplexer.panes:
            self._add(pane_id)
        multiplexer.changes.subscribe(self._hear)

    def _hear(self, change: Change) -> None:
        if isinstance(change, PaneOpened):
            self._add(change.pane_id)
        elif isinstance(change, PaneGone):
            for uri in uris_of(change.pane_id):
                self._registry.remove_resource(uri)
        elif isinstance(change, PaneChanged):
            self._note(change.pane_id)

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
