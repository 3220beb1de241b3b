"""Result types of the viewer API, and a row of cells as text for another terminal.

A row carries its colours and styles, and no sequence that acts outside of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from dari.terminal.engine.grid import Cell, Rgb


class FramePane(Struct, frozen=True, kw_only=True):
    """Where a pane is in the frame."""

    id: str
    left: int
    top: int
    cols: int
    rows: int
    name: str = ""


class FrameRow(Struct, frozen=True, array_like=True):
    """One row of one pane: text with SGR, exactly as wide as the pane."""

    pane: str
    row: int
    text: str


class FrameCursor(Struct, frozen=True):
    col: int
    row: int
    shape: str
    is_blinking: bool


class FrameModes(Struct, frozen=True, kw_only=True):
    """What the focused program asks of the terminal; the viewer's own terminal does the same meanwhile."""

    application_cursor: bool = False
    application_keypad: bool = False
    bracketed_paste: bool = False
    focus: bool = False
    mouse: str = "off"
    kitty_keyboard: int = 0


class FrameTab(Struct, frozen=True):
    id: str
    name: str


class ViewFrame(Struct, frozen=True, kw_only=True):
    """What changed since the last frame of this viewer; with `is_whole`, everything is drawn anew."""

    version: int
    is_whole: bool = False
    is_over: bool = False
    """Nothing is left to look at."""
    cols: int = 0
    rows: int = 0
    panes: list[FramePane] = []
    focused: str = ""
    changed: list[FrameRow] = []
    cursor: FrameCursor | None = None
    modes: FrameModes = FrameModes()
    title: str = ""
    window: str = ""
    window_id: str = ""
    window_number: int = 1
    window_count: int = 1
    tabs: list[FrameTab] = []
    tab: str = ""
    """The id of the tab that is shown."""
    is_zoomed: bool = False
    scrolled: int = 0
    """Rows that the focused pane is scrolled back."""
    is_copying: bool = False
    """The focused pane is in copy mode; `cursor` is the cursor of that mode."""
    approvals: int = 0
    """Questions of agents that wait for a person."""
    ended: int | None = None
    """The exit code of the focused pane's program, once it has one."""
    has_bell: bool = False
    clipboard: str = ""
    """What a program copied (OSC 52), in base64."""


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
