"""How far a call is, on one line of the screen that goes away when something else is said."""

from __future__ import annotations

import time

from dari.cli.remote.payloads import cut
from dari.cli.remote.terminal import Terminal
from dari.core.context import Progress
from dari.text.sanitize import escape_hidden

_EVERY_S = 0.05
_BAR = 24


class Meter:
    """Draws on a tty only; at most twenty times a second, and always the last step."""

    def __init__(self, terminal: Terminal, name: str) -> None:
        self._terminal = terminal
        self._name = escape_hidden(name, one_line=True)
        self._drawn_s = 0.0
        self._is_drawn = False

    def show(self, progress: Progress) -> None:
        if not self._terminal.stderr_is_tty:
            return
        total = progress.total if isinstance(progress.total, int | float) and progress.total > 0 else None
        is_last = total is not None and progress.progress >= total
        now_s = time.monotonic()
        if now_s - self._drawn_s < _EVERY_S and not is_last:
            return
        self._drawn_s = now_s
        self._is_drawn = True
        self._terminal.err(f"\r\x1b[K{cut(self._line(progress, total), max(20, self._terminal.columns - 1))}")

    def clear(self) -> None:
        """Take the line away, so that what follows starts on an empty one."""
        if self._is_drawn:
            self._is_drawn = False
            self._terminal.err("\r\x1b[K")

    def _line(self, progress: Progress, total: float | None) -> str:
        said = escape_hidden(progress.message, one_line=True) if isinstance(progress.message, str) else ""
        if total is None:
            return f"{self._name}  {progress.progress:g}  {said}".rstrip()
        share = max(0.0, min(1.0, progress.progress / total))
        full = round(share * _BAR)
        bar = "█" * full + "░" * (_BAR - full)
        return f"{self._name} {bar} {share:4.0%}  {said}".rstrip()
