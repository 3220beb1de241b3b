"""The person's terminal while it is ours (raw, on its other screen), and frames of the server as bytes for it."""

from __future__ import annotations

import os
import signal
import termios
import tty
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

Frame = dict[str, Any]


Cell = tuple[int, int]


BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know synchronized output show a frame as a whole."""


# Which of the neighbours (up, down, left, right) are border, too.
_LINES = {
    (True, True, False, False): "│",
    (False, False, True, True): "─",
    (False, True, False, True): "┌",
    (False, True, True, False): "┐",
    (True, False, False, True): "└",
    (True, False, True, False): "┘",
    (True, True, False, True): "├",
    (True, True, True, False): "┤",
    (False, True, True, True): "┬",
    (True, False, True, True): "┴",
    (True, True, True, True): "┼",
}


_SHAPES = {"block": 2, "underline": 4, "bar": 6}


_MOUSE = {"off": "\x1b[?1003l\x1b[?1002h", "any": "\x1b[?1003h"}


_USUAL_MODES: Frame = {
    "application_cursor": False,
    "application_keypad": False,
    "bracketed_paste": False,
    "focus": False,
    "mouse": "off",
    "kitty_keyboard": 0,
}


class Drawing:
    """Remembers what the terminal shows, so that only what differs is written."""

    def __init__(self, *, has_mouse: bool) -> None:
        self._has_mouse = has_mouse
        self._panes: dict[str, Frame] = {}
        self._frame: Frame = {}
        self._modes: Frame = _USUAL_MODES
        self._status = ""
        self._title = ""
        self._shape = 0
        self.message = ""
        """Shown in the status line instead of what stands there."""

    def draw(self, frame: Frame, cols: int, rows: int) -> str:
        """What to write for this frame on a terminal of this size; the last row is the status line."""
        parts = [BEGIN, "\x1b[?25l"]
        is_whole = frame["is_whole"]
        self._panes = {pane["id"]: pane for pane in frame["panes"]}
        if is_whole:
            parts.append("\x1b[0m\x1b[2J")
            parts += self._outside(frame, cols, rows - 1)
            self._status = ""
        if is_whole or frame["focused"] != self._frame.get("focused"):
            parts += self._borders(frame, cols, rows - 1)
        for pane_id, row, text in frame["changed"]:
            pane = self._panes[pane_id]
            if pane["top"] + row < rows - 1 and pane["left"] < cols:
                parts.append(f"\x1b[{pane['top'] + row + 1};{pane['left'] + 1}H{text}")
        self._frame = frame
        parts.append(self._mirrored(frame["modes"]))
        name = self._panes.get(frame["focused"], {}).get("name", "")
        parts.append(self._titled(frame["title"] or name))
        if frame["has_bell"]:
            parts.append("\x07")
        if frame["clipboard"]:
            parts.append(f"\x1b]52;c;{frame['clipboard']}\x07")
        parts.append(self.finish(cols, rows))
        return "".join(parts)

    @property
    def has_keyboard(self) -> bool:
        """The kitty keyboard is turned on in the person's terminal."""
        return bool(self._modes["kitty_keyboard"])

    def undo_modes(self) -> str:
        """What to write so that the terminal has the modes again that it had before the first frame."""
        return self._mirrored(_USUAL_MODES)

    def finish(self, cols: int, rows: int) -> str:
        """The status line where it changed, and the cursor at its place."""
        status = self._status_line(cols)
        drawn = "" if status == self._status else f"\x1b[{rows};1H\x1b[0;7m{status}\x1b[0m"
        self._status = status
        return drawn + self._cursor(cols, rows) + END

    def _cursor(self, cols: int, rows: int) -> str:
        cursor = self._frame.get("cursor")
        is_away = bool(self._frame.get("scrolled")) and not self._frame["is_copying"]
        if cursor is None or is_away or cursor["row"] >= rows - 1 or cursor["col"] >= cols:
            return "\x1b[?25l"
        shape = _SHAPES[cursor["shape"]] - (1 if cursor["is_blinking"] else 0)
        shaped = "" if shape == self._shape else f"\x1b[{shape} q"
        self._shape = shape
        return f"{shaped}\x1b[{cursor['row'] + 1};{cursor['col'] + 1}H\x1b[?25h"

    def _mirrored(self, modes: Frame) -> str:
        """The modes of the focused program in the person's terminal: what is typed then fits, byte for byte."""
        before, self._modes = self._modes, modes
        parts: list[str] = []

        def differs(name: str) -> bool:
            return bool(modes[name] != before[name])

        for name, number in (("application_cursor", 1), ("bracketed_paste", 2004), ("focus", 1004)):
            if differs(name):
                parts.append(f"\x1b[?{number}{'h' if modes[name] else 'l'}")
        if differs("application_keypad"):
            parts.append("\x1b=" if modes["application_keypad"] else "\x1b>")
        if differs("kitty_keyboard"):
            parts.append("\x1b[<u" if before["kitty_keyboard"] else "")
            parts.append(f"\x1b[>{modes['kitty_keyboard']}u" if modes["kitty_keyboard"] else "")
        if self._has_mouse and differs("mouse"):
            parts.append(_MOUSE["any" if modes["mouse"] == "any" else "off"])
        return "".join(parts)

    def _titled(self, title: str) -> str:
        title = "".join(each for each in title if each.isprintable())[:200]
        if title == self._title:
            return ""
        self._title = title
        return f"\x1b]2;{title or 'crux'}\x07"

    def _borders(self, frame: Frame, cols: int, rows: int) -> Iterator[str]:
        cells = set(_border_cells(frame))
        focused = self._panes.get(frame["focused"])
        near = set(_around(focused)) if focused is not None and len(self._panes) > 1 else set()
        for col, row in sorted(cells, key=lambda cell: (cell[1], cell[0])):
            if col >= cols or row >= rows:
                continue
            up, down = (col, row - 1) in cells, (col, row + 1) in cells
            line = _LINES.get((up, down, (col - 1, row) in cells, (col + 1, row) in cells))
            line = line or ("│" if up or down else "─")
            style = "32" if (col, row) in near else "2"
            yield f"\x1b[{row + 1};{col + 1}H\x1b[0;{style}m{line}\x1b[0m"

    def _outside(self, frame: Frame, cols: int, rows: int) -> Iterator[str]:
        """Another viewer's terminal is smaller: what is not part of the window is dotted."""
        for row in range(rows):
            start = frame["cols"] if row < frame["rows"] else 0
            if start < cols:
                yield f"\x1b[{row + 1};{start + 1}H\x1b[0;2m{'·' * (cols - start)}\x1b[0m"

    def _status_line(self, cols: int) -> str:
        frame = self._frame
        if self.message:
            return fit_columns(" " + self.message, cols)
        if not frame:
            return fit_columns("", cols)
        count = f" {frame['window_number']}/{frame['window_count']}" if frame["window_count"] > 1 else ""
        head = _printable(f" [{frame['window']}{count}]")
        notice = ""
        if frame["ended"] is not None:
            notice = f"pane {frame['focused']} ended ({frame['ended']}), a key closes it "
        elif frame["approvals"]:
            notice = f"{frame['approvals']} waiting for you: crux approvals "
        elif frame["is_copying"]:
            notice = f"copy mode, {frame['scrolled']} rows back "
        elif frame["scrolled"]:
            notice = f"{frame['scrolled']} rows back "
        left = head + _tabs_line(frame, cols - _columns(head) - (_columns(notice) + 1 if notice else 0))
        right = notice or fit_columns(_panes_line(frame), max(0, cols - _columns(left) - 2)).rstrip() + " "
        return fit_columns(left + " " * (cols - _columns(left) - _columns(right)) + right, cols)


def _tabs_line(frame: Frame, cols: int) -> str:
    """The tabs by number and name; where they do not all fit, the shown one and its neighbours."""
    words = []
    first = 0
    for index, tab in enumerate(frame["tabs"]):
        is_shown = tab["id"] == frame["tab"]
        mark = ("*Z" if frame["is_zoomed"] else "*") if is_shown else ""
        words.append(_printable(f" {index}:{tab['name']}{mark}"))
        first = index if is_shown else first
    widths = [_columns(word) for word in words]
    last, used = first + 1, sum(widths[first : first + 1])
    if used + sum(widths[:first]) + sum(widths[last:]) <= cols:
        return "".join(words)
    room = cols - len(" < >")
    while last < len(words) and used + widths[last] <= room:
        used, last = used + widths[last], last + 1
    while first > 0 and used + widths[first - 1] <= room:
        used, first = used + widths[first - 1], first - 1
    before, after = " <" if first > 0 else "", " >" if last < len(words) else ""
    return before + "".join(words[first:last]) + after


def _border_cells(frame: Frame) -> Iterator[Cell]:
    for pane in frame["panes"]:
        if pane["left"]:
            for row in range(pane["top"] - (1 if pane["top"] else 0), pane["top"] + pane["rows"]):
                yield pane["left"] - 1, row
        if pane["top"]:
            for col in range(pane["left"], pane["left"] + pane["cols"]):
                yield col, pane["top"] - 1


def _around(pane: Frame) -> Iterator[Cell]:
    left, top, right, bottom = pane["left"], pane["top"], pane["left"] + pane["cols"], pane["top"] + pane["rows"]
    for row in range(top - 1, bottom + 1):
        yield left - 1, row
        yield right, row
    for col in range(left, right):
        yield col, top - 1
        yield col, bottom


def _panes_line(frame: Frame) -> str:
    """The panes of the tab by number and name, then what the focused program calls itself."""
    words = [
        pane["id"] + (f":{pane['name']}" if pane["name"] else "") + ("*" if pane["id"] == frame["focused"] else "")
        for pane in frame["panes"]
    ]
    focused = next((pane for pane in frame["panes"] if pane["id"] == frame["focused"]), None)
    title = frame["title"] if focused is not None and frame["title"] != focused["name"] else ""
    return "  ".join(words) + (f" | {title}" if title else "") + " "


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())


def _columns(text: str) -> int:
    from dari.text.width import text_width

    return text_width(text)


def fit_columns(text: str, cols: int) -> str:
    from dari.text.width import take_columns

    text = take_columns(_printable(text), cols)
    return text + " " * (cols - _columns(text))


ENTER = "\x1b[?1049h\x1b[?7l\x1b[22;0t\x1b[0m\x1b[2J\x1b[H\x1b[?25l"


MOUSE = "\x1b[?1002h\x1b[?1006h"


LEAVE = (
    "\x1b[?2026l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[?1l\x1b>"
    "\x1b[0m\x1b[0 q\x1b[?7h\x1b[?25h\x1b[?1049l\x1b[23;0t"
)


_SIGNALS = (signal.SIGWINCH, signal.SIGCONT)


_ENDS = (signal.SIGTERM, signal.SIGHUP)


class Ended(Exception):
    """A signal asked us to end."""


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
