"""bittty's cells as ours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dari.terminal.engine.grid import BLANK, PALETTE, Cell, Rgb, Row, Underline


class CellReader:
    """Reads rows at one moment: styles are told apart by identity, which holds while nothing is printed."""

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
