"""The person's terminal while it is ours: raw, on its other screen; given back as it was, whatever happens."""

from __future__ import annotations

import os
import signal
import termios
import tty
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

ENTER = "\x1b[?1049h\x1b[?7l\x1b[22;0t\x1b[0m\x1b[2J\x1b[H\x1b[?25l"
MOUSE = "\x1b[?1002h\x1b[?1006h"
LEAVE = (
    "\x1b[?2026l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[?1l\x1b>"
    "\x1b[0m\x1b[0 q\x1b[?7h\x1b[?25h\x1b[?1049l\x1b[23;0t"
)
_SIGNALS = (signal.SIGWINCH, signal.SIGCONT)
_ENDS = (signal.SIGTERM, signal.SIGHUP)


class Ended(Exception):
    """We were told to end."""


class Screen:
    """`with` it; `wakeup` becomes readable with every signal that matters."""

    def __init__(self, *, has_mouse: bool) -> None:
        self._input, self._output = 0, 1
        self._has_mouse = has_mouse
        self._before: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._old_wakeup = -1
        self.has_keyboard = False
        """The kitty keyboard was turned on, and has to be turned off again."""
        self.wakeup = -1

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._input)
        self.wakeup, self._writes = os.pipe()
        for end in (self.wakeup, self._writes):
            os.set_blocking(end, False)
        try:
            for number in _SIGNALS:
                self._handlers[number] = signal.signal(number, _ignore)
            for number in _ENDS:
                self._handlers[number] = signal.signal(number, _end)
            self._old_wakeup = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
            self.take()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in _ENDS:  # a second one must not interrupt this
            signal.signal(end, signal.SIG_IGN)
        with suppress(OSError):  # the terminal may be gone
            self.write(("\x1b[<u" if self.has_keyboard else "") + LEAVE)
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._input, termios.TCSAFLUSH, self._before)
        signal.set_wakeup_fd(self._old_wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self.wakeup)
        os.close(self._writes)

    def take(self) -> None:
        """Make the terminal ours, also after somebody else had it meanwhile."""
        tty.setraw(self._input, termios.TCSANOW)
        self.write(ENTER + (MOUSE if self._has_mouse else ""))

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows; a terminal that does not know has the usual ones."""
        try:
            size = os.get_terminal_size(self._output)
        except OSError:
            return 80, 24
        return (size.columns or 80, size.lines or 24)

    def woken(self) -> bytes:
        """The numbers of the signals that came."""
        with suppress(BlockingIOError):
            return os.read(self.wakeup, 4096)
        return b""

    def read(self) -> bytes:
        return os.read(self._input, 1 << 16)

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._output, data) :]


def _ignore(number: int, frame: FrameType | None) -> None:
    pass


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended(signal.Signals(number).name)
