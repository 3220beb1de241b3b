"""Workarounds for libghostty-vt (6467b1dab): `CrashGuard` withholds bytes that would crash it; `SequenceRewriter`
replaces what it misreads. It prints DEL, a filler without effect, and ignores DECSTR (`CSI ! p`, in every
`tput init`), so margins and modes of one program would stay for the next; a DECSTR that the end of a chunk cuts in
two is held until the rest comes.


A character that joins the one before it and makes it wide (an emoji after ZWJ, an Indic conjunct) moves both to the
next line when they stand in the last column. On a line from which wrapping does not lead further (the last one,
below a scroll region; or with left and right margins) the library follows a null pointer. There the join is undone
by a return, which is where wrapping leads on such a line. Looked for only in output that holds such characters, and
only where a region or margins are set.
"""

from __future__ import annotations

import re

from dari.terminal.engine.ghostty.terminal import NativeTerminal
from dari.terminal.engine.ghostty.values import Values, is_set

_MARGINS = 69
# ZWJ, and the viramas that link consonants (Devanagari … Malayalam, Myanmar, Khmer, Balinese and their kin).
_LINK = re.compile(
    rb"\xe2\x80\x8d|\xe0[\xa4-\xb7][\x80-\xbf]|\xe1[\x80\x9e\xa8\xac\xae][\x80-\xbf]"
    rb"|\xea[\xa6\xab][\x80-\xbf]|\xf0\x91[\x80-\xbf][\x80-\xbf]"
)
# By their first byte, which is looked for a hundred times faster than two.
_MAY_LINK = {
    0xE2: (b"\xe2\x80\x8d",),
    0xE0: (b"",),
    0xE1: (b"",),
    0xEA: (b"\xea\xa6", b"\xea\xab"),
    0xF0: (b"\xf0\x91",),
}
_ESC, _C1 = 0x1B, 0xC2
_SETS = re.compile(rb"\x1b(?:\[[0-9;]*[rs]|\[\?[0-9;]*[hls]|[78c]|\[!p)")
_REGION = re.compile(rb"\x1bP1\$r(\d*);?(\d*)r\x1b\\")


class CrashGuard:
    """All writes to one terminal go through it."""

    def __init__(self, native: NativeTerminal, values: Values) -> None:
        self._native = native
        self._values = values
        self._lib = native.binding.lib
        self.held = b""  # a character that the end of a chunk cut in two
        self._is_whole = False  # no region or margins are set, nor can be before the next ESC

    def write(self, data: bytes) -> None:
        if self.held or (data and data[-1] >= 0x80):
            data = self.held + data
            cut = _whole(data)
            self.held, data = data[cut:], data[:cut]
        has_control = _ESC in data or _C1 in data
        if (
            not data.isascii()
            and (has_control or not self._fills_screen())
            and _has_link(data)
            and self._may_stay(data)
        ):
            before = 0
            for link in _LINK.finditer(data):
                self._put(data[before : link.end()])
                self._unjoin()
                before = link.end()
            data = data[before:]
        if has_control:
            self._is_whole = False
        self._put(data)

    def forget(self) -> None:
        """The screen has another size now."""
        self._is_whole = False

    def _fills_screen(self) -> bool:
        if not self._is_whole:
            self._is_whole = not self._may_stay(b"")
        return self._is_whole

    def _put(self, data: bytes) -> None:
        self._lib.ghostty_terminal_vt_write(self._native.pointer, data, len(data))

    def _unjoin(self) -> None:
        """After a linking character: what comes next could join, and would have to wrap."""
        pointer, values = self._native.pointer, self._values
        if values.read(pointer, "CURSOR_PENDING_WRAP"):
            is_last = values.read(pointer, "CURSOR_Y") == values.read(pointer, "ROWS") - 1
            if is_last or is_set(values, pointer, _MARGINS):
                self._put(b"\r")

    def _may_stay(self, data: bytes) -> bool:
        pointer = self._native.pointer
        if not self._values.read(pointer, "VT_GROUND") or _SETS.search(data):
            return True
        return is_set(self._values, pointer, _MARGINS) or self._bottom() < self._values.read(pointer, "ROWS")

    def _bottom(self) -> int:
        """The last row of the scroll region, asked of the terminal as a program would."""
        if not self._values.read(self._native.pointer, "VT_GROUND"):
            return 0
        heard = self._native.heard
        others, heard.replies = heard.replies, []
        self._put(b"\x1bP$qr\x1b\\")
        found = _REGION.search(b"".join(heard.replies))
        heard.replies = others
        return int(found[2] or 0) if found else 0


def _has_link(data: bytes) -> bool:
    return any(first in data and any(link in data for link in links) for first, links in _MAY_LINK.items())


def _whole(data: bytes) -> int:
    """Where the last character begins when its end has not come yet, else the end."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 1
            return len(data) - back if back < needed else len(data)
        if byte < 0x80:
            break
    return len(data)


_ESCAPE, _DEL, _MARK = 0x1B, 0x7F, b"!"
_SOFT_RESET = b"\x1b[!p"
_CUT = re.compile(rb"\x1b(?:\[!?)?\Z")
# Cursor shown, no insert and origin mode, no margins, wrapping, plain keys, ASCII, no style, no protection, and home
# as the saved place: VT510, "DECSTR". The cursor itself stays where it is.
_PLAIN = b'\x1b[?25h\x1b[4l\x1b[?6l\x1b[?69l\x1b[r\x1b[?7h\x1b[?1l\x1b>\x1b(B\x1b)B\x0f\x1b[0m\x1b[0"q\x1b[H\x1b7'


class SequenceRewriter:
    """All writes to one terminal go through it, and then through the guard."""

    def __init__(self, native: NativeTerminal, values: Values, guard: CrashGuard) -> None:
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
        if _ESCAPE in data:
            if _ESCAPE in data[-3:] and (cut := _CUT.search(data, max(0, len(data) - 3))):
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
