"""bittty's cells as ours, and what its board says: replies, titles, bells, clips, rows that scroll off its top."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dari.terminal.engine.engine import DEFAULT_HISTORY_ROWS, MAX_CLIPBOARD_BYTES
from dari.terminal.engine.grid import BLANK, PALETTE, Cell, Rgb, Row, Underline


class CellReader:
    """Reads rows at one moment: styles are distinguished by identity, which holds while nothing is printed."""

    def __init__(self, palette: Any) -> None:
        self._palette = palette
        self._known: dict[tuple[int, str, int], Cell] = {}

    def row(self, cells: Sequence[Any], wraps: bool) -> Row:
        known = self._known
        found: list[Cell] = []
        last = len(cells) - 1
        for at, (style, text) in enumerate(cells):
            width = 0 if text == "" else 2 if at < last and cells[at + 1][1] == "" else 1
            key = (id(style), text, width)
            cell = known.get(key)
            if cell is None:
                cell = known[key] = _cell(style, text, width, self._palette)
            found.append(cell)
        return Row(tuple(found), wraps)


def _cell(style: Any, text: str, width: int, palette: Any) -> Cell:
    text = "" if text in (" ", "") else str(text)  # bittty marks wide ones by a class of its own
    fg, bg, underline_color, flags = _read(style)
    if flags is None and width == 1 and not text and style.hyperlink is None:
        return BLANK
    bold, italic, underline, inverse, strike, dim, blink, invisible, overline = flags or _NONE
    return Cell(
        text,
        width,
        _rgb(fg, palette),
        _rgb(bg, palette),
        bold,
        italic,
        underline,
        inverse,
        strike,
        dim,
        blink,
        invisible,
        overline,
        _rgb(underline_color, palette),
        style.hyperlink or "",
        _index(fg, palette),
        _index(bg, palette),
    )


_NONE: tuple[bool, bool, Underline, bool, bool, bool, bool, bool, bool] = (
    False, False, "", False, False, False, False, False, False
)  # fmt: skip


@lru_cache(maxsize=4096)
def _read(style: Any) -> tuple[Any, Any, Any, Any]:
    """Colours and attributes; attributes are None for a style that has neither."""
    underline: Underline = (style.underline_style or "single") if style.underline else ""
    flags = (
        bool(style.bold),
        bool(style.italic),
        underline,
        bool(style.reverse),
        bool(style.strike),
        bool(style.dim),
        bool(style.blink),
        bool(style.conceal),
        bool(style.overline),
    )
    is_plain = flags == _NONE and _is_default(style.fg) and _is_default(style.bg)
    return style.fg, style.bg, style.underline_color, None if is_plain else flags


def _is_default(color: Any) -> bool:
    return color is None or color.mode == "default"


def _index(color: Any, palette: Any) -> int | None:
    if _is_default(color) or color.mode != "indexed" or tuple(palette[color.value]) != PALETTE[color.value]:
        return None
    return int(color.value)


def _rgb(color: Any, palette: Any) -> Rgb | None:
    if _is_default(color):
        return None
    if color.mode == "indexed":
        red, green, blue = palette[color.value]
    else:
        red, green, blue = color.value
    return red, green, blue


class Cable:
    """The host side of a board: it only collects what the board wants to send."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: str) -> int:
        self.sent.append(data.encode(errors="replace"))
        return len(data)

    def write_bytes(self, data: bytes) -> int:
        self.sent.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def configure_line(self, line: object) -> None:
        pass

    def resize(self, rows: int, cols: int) -> None:
        pass

    def close(self) -> None:
        pass

    def taken(self) -> bytes:
        sent, self.sent = self.sent, []
        return b"".join(sent)


class Display:
    """The screen side of a board: keeps history, and remembers events until the engine tells them on."""

    keeps_scrollback = True

    def __init__(self, cols: int, history_rows: int = DEFAULT_HISTORY_ROWS) -> None:
        from bittty.terminals.scrollback import MemoryScrollback

        self.store: Any = MemoryScrollback(_most_cells(cols, history_rows))
        self.scrolled = 0  # rows that ever left the screen
        self.cleared = 0  # how many of them were there when history was last cleared
        self.title = ""
        self.told_cwd = ""
        self.bells = 0
        self.clips: list[bytes] = []

    def present(self, event: Any) -> None:
        match type(event).__name__:
            case "RowsScrolledOff":
                self._keep(event.lines)
            case "ScrollbackCleared":
                self.store.clear()
                self.cleared = self.scrolled
            case "Bell":
                self.bells += 1
            case "TitleChanged":
                self.title = event.title
            case "CwdChanged":
                self.told_cwd = event.cwd

    def _keep(self, lines: Any) -> None:
        from bittty.terminals.scrollback import ScrollbackLine

        for line in lines:
            row = ScrollbackLine.of(line.cells, not line.wrapped, line.attribute)
            self.store.append(row, line.wrapped)
        self.scrolled += len(lines)

    def limit(self, cols: int, history_rows: int) -> None:
        self.store.max_cells = _most_cells(cols, history_rows)

    def take_clip(self, operation: Any) -> None:
        """OSC 52 in place of the board's own handler, which would answer reads."""
        _selection, payload = operation.args
        if payload == "?" or len(payload) > MAX_CLIPBOARD_BYTES * 4 // 3 + 4:
            return
        try:
            clip = base64.b64decode(payload, validate=True)
        except (binascii.Error, ValueError):
            return
        if len(clip) <= MAX_CLIPBOARD_BYTES:
            self.clips.append(clip)


def _most_cells(cols: int, history_rows: int) -> int:
    return history_rows * (cols + 1)
