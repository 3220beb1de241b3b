"""Calls of `crux` to cruxd."""

from __future__ import annotations

import os

from dari.daemon.blocking_client import BlockingClient
from dari.terminal.paths import CruxPaths


class CruxClient(BlockingClient):
    """With `starts`, the first call starts cruxd where none answers."""

    def __init__(self, place: CruxPaths, *, starts: bool = True) -> None:
        command = place.command if starts else None
        hint = "open a pane to start one: crux split-pane"
        super().__init__(place, "cli", command=command, server="terminal server", start_hint=hint)
        self.place = place

    def _shake_hands(self) -> None:
        super()._shake_hands()
        if self._is_new and _has_person():
            # As with tmux, panes have the environment of the person who started the server.
            self._is_new = False
            self._send("crux:server/adopt-environment", {"variables": dict(os.environ)})
            self._answer("crux:server/adopt-environment")


def _has_person() -> bool:
    """Whether one of our streams is a terminal: an agent's tool that runs `crux` has none."""
    return any(os.isatty(number) for number in (0, 1, 2))
