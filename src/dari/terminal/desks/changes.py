"""Which panes there are and which of them changed, for those who follow from another process."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from dari.daemon.stub import expose
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged, PaneGone

GATHER_S = 0.1
"""Output comes in many pieces; followers hear of them together."""


class PaneChanges(Struct, frozen=True):
    """`version` is for the next call, `changed` are panes that showed or did something since the last one."""

    version: int
    panes: list[str]
    changed: list[str]


class ChangesDesk:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._version = 1
        self._changed: dict[str, int] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        multiplexer.changes.subscribe(self._hear)

    @expose("crux:pane/changes", "read", ends_with_caller=True)
    async def changes(self, seen: int = 0, timeout_s: float = 30.0) -> PaneChanges:
        """What happened after the version `seen`, once something has; the same version after the time. 0: at once."""
        if seen == self._version:
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(told)
            try:
                async with asyncio.timeout(timeout_s):
                    await told
                    await asyncio.sleep(GATHER_S)
            except TimeoutError:
                pass
            finally:
                self._waiting.discard(told)
        changed = [pane_id for pane_id, version in self._changed.items() if version > seen]
        return PaneChanges(self._version, list(self._all.panes), changed)

    def _hear(self, change: Change) -> None:
        self._version += 1
        if isinstance(change, PaneGone):
            self._changed.pop(change.pane_id, None)
        elif isinstance(change, PaneChanged):
            self._changed[change.pane_id] = self._version
        if self._waiting:
            for told in self._waiting:
                if not told.done():
                    told.set_result(None)
