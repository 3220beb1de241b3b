"""What libghostty-vt (6467b1dab) takes for something else, said in words it has.

DEL is a filler without effect; the library prints it. DECSTR (`CSI ! p`, in every `tput init`) is left out, so that
margins and modes of one program stay for the next. A DECSTR that the end of a chunk cuts in two is held until the
rest comes: how the stream is cut makes no difference.
"""

from __future__ import annotations

import re

from dari.terminal.engine.ghostty.guard import Guard
from dari.terminal.engine.ghostty.terminal import NativeTerminal
from dari.terminal.engine.ghostty.values import Values

_ESC, _DEL, _MARK = 0x1B, 0x7F, b"!"
_SOFT_RESET = b"\x1b[!p"
_CUT = re.compile(rb"\x1b(?:\[!?)?\Z")
# Cursor shown, no insert and origin mode, no margins, wrapping, plain keys, ASCII, no style, no protection, and home
# as the saved place: VT510, "DECSTR". The cursor itself stays where it is.
_PLAIN = b'\x1b[?25h\x1b[4l\x1b[?6l\x1b[?69l\x1b[r\x1b[?7h\x1b[?1l\x1b>\x1b(B\x1b)B\x0f\x1b[0m\x1b[0"q\x1b[H\x1b7'


class Mender:
    """All writes to one terminal go through it, and then through the guard."""

    def __init__(self, native: NativeTerminal, values: Values, guard: Guard) -> None:
        self._native = native
        self._values = values
        self._guard = guard
        self._held = b""

    @property
    def held(self) -> bytes:
        """What came and is not in the terminal yet; a new mender goes on from it."""
        return self._guard.held + self._held

    @held.setter
    def held(self, data: bytes) -> None:
        self._held = data

    def forget(self) -> None:
        """The screen has another size now."""
        self._guard.forget()

    def write(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
        if _DEL in data:
            data = data.replace(b"\x7f", b"")
        if _ESC in data:
            if _ESC in data[-3:] and (cut := _CUT.search(data, max(0, len(data) - 3))):
                data, self._held = data[: cut.start()], cut[0]
            data = self._mended(data)
        self._guard.write(data)

    def _mended(self, data: bytes) -> bytes:
        """What is left to write after the last soft reset."""
        before = 0
        # One byte is looked for a hundred times faster than four, and this one is rare.
        at = data.find(_MARK)
        while at >= 0:
            if at >= before + 2 and data[at - 2 : at + 2] == _SOFT_RESET:
                self._guard.write(data[before : at - 2])
                before = at + 2
                read, pointer = self._values.read, self._native.pointer
                col, row = read(pointer, "CURSOR_X"), read(pointer, "CURSOR_Y")
                self._guard.write(_PLAIN + b"\x1b[%d;%dH" % (row + 1, col + 1))
            at = data.find(_MARK, at + 1)
        return data[before:]
