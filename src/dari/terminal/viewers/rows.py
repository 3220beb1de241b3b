"""Cells as text for another terminal: a row with its colours and styles, and nothing that leaves the row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from dari.terminal.engine.grid import Cell, Rgb

Depth = Literal["true", "256"]
_LEVELS = (0, 95, 135, 175, 215, 255)
_UNDERLINES = {"single": "4", "double": "4:2", "curly": "4:3", "dotted": "4:4", "dashed": "4:5"}


def write_row(cells: Sequence[Cell], cols: int, depth: Depth = "true", left: int = 0) -> str:
    """Exactly `cols` columns, whatever the row had, of which the first is column `left` of the terminal.

    The style is plain again at the end.
    """
    parts: list[str] = []
    style = ""
    used = 0
    for col, cell in enumerate(cells[:cols]):
        if not cell.width:
            continue
        if col + cell.width > cols:
            break
        if used < col:  # half of a wide character whose other half is gone
            parts.append(" " * (col - used))
        wanted = style_of(cell, depth, cell.fg_index, cell.bg_index)
        if wanted != style:
            parts.append(f"\x1b[0{wanted}m")
            style = wanted
        parts.append(cell.text or " ")
        used = col + cell.width
        if len(cell.text) > 1:
            # Terminals differ about the width of a cluster: what follows is put where we have it.
            parts.append(f"\x1b[{left + used + 1}G")
    if style:
        parts.append("\x1b[0m")
    parts.append(" " * (cols - used))
    return "".join(parts)


@lru_cache(4096)
def style_of(cell: Cell, depth: Depth, fg_index: int | None = None, bg_index: int | None = None) -> str:
    """The SGR parameters after a reset, each with its `;` before it; empty for a plain cell.

    A colour of the 256 is sent as its number: it is then what the person's own terminal has for it.
    """
    words: list[str] = []
    for is_set, code in (
        (cell.bold, "1"),
        (cell.dim, "2"),
        (cell.italic, "3"),
        (bool(cell.underline), _UNDERLINES.get(cell.underline, "4")),
        (cell.blink, "5"),
        (cell.inverse, "7"),
        (cell.invisible, "8"),
        (cell.strike, "9"),
        (cell.overline, "53"),
    ):
        if is_set:
            words.append(code if depth == "true" else code[:1] if ":" in code else code)
    if cell.fg is not None:
        words.append(("3", "9")[8 <= (fg_index or 0) < 16] + color(cell.fg, depth, fg_index))
    if cell.bg is not None:
        words.append(("4", "10")[8 <= (bg_index or 0) < 16] + color(cell.bg, depth, bg_index))
    return "".join(f";{word}" for word in words)


def color(rgb: Rgb, depth: Depth, index: int | None = None) -> str:
    """What follows the 3 or 4 of an SGR colour; 9 or 10 for the eight bright ones."""
    if index is not None:
        return str(index % 8) if index < 16 else f"8;5;{index}"
    if depth == "true":
        return f"8;2;{rgb[0]};{rgb[1]};{rgb[2]}"
    red, green, blue = (min(range(6), key=lambda at: abs(_LEVELS[at] - value)) for value in rgb)
    cube = 16 + 36 * red + 6 * green + blue
    grey = max(0, min(23, round((sum(rgb) / 3 - 8) / 10)))
    level = 8 + 10 * grey
    cube_error = sum((_LEVELS[at] - value) ** 2 for at, value in zip((red, green, blue), rgb, strict=True))
    grey_error = sum((level - value) ** 2 for value in rgb)
    return f"8;5;{cube if cube_error <= grey_error else 232 + grey}"
