"""One line of progress on a person's screen; nothing in a pipe, with --quiet or with --json."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from dari.cli.kebab.context import KebabContext
from dari.cli.kit.table import one_line
from dari.text.width import truncate

REDRAW_S = 0.08
_BAR_COLUMNS = 24
T = TypeVar("T")


class ProgressBar:
    """Safe to call from the thread that works."""

    def __init__(self, context: KebabContext) -> None:
        self._console = context.console
        self._is_shown = context.console.stderr_is_tty and not context.is_quiet and not context.as_json
        self._drawn_s = 0.0
        self._is_drawn = False

    def show(self, what: str, done: int = 0, total: int = 0) -> None:
        now_s = time.monotonic()
        if not self._is_shown or now_s - self._drawn_s < REDRAW_S:
            return
        self._drawn_s, self._is_drawn = now_s, True
        filled = min(_BAR_COLUMNS, _BAR_COLUMNS * done // total) if total else 0
        bar = f"[{'█' * filled}{'·' * (_BAR_COLUMNS - filled)}] {100 * done // total:3d} % " if total else ""
        self._console.err("\r" + truncate(f"{bar}{one_line(what)}", max(20, self._console.columns - 1)) + "\x1b[K")

    def clear(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._console.err("\r\x1b[K")


async def run_cancellable(work: Callable[[threading.Event], T], context: KebabContext, line: ProgressBar) -> T:
    """The result of work in a thread. Ctrl-C sets the event, which ends the work at its next step, and waits for it."""
    cancel = threading.Event()
    running = asyncio.ensure_future(context.call(work, cancel))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel.set()
        await asyncio.gather(running, return_exceptions=True)
        raise
    finally:
        line.clear()
