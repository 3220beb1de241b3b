"""A screen as the bytes that draw it again: snapshots of the fallback engine.

History, both screens, cursor, styles, scroll region and modes come back. Tab stops, character sets and a sequence
that was cut in two do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dari.terminal.engine.grid import BLANK, Cell, Row
from dari.terminal.engine.render import sgr_of

_MODES = {
    "cursor_application_mode": 1,
    "reverse_screen": 5,
    "auto_wrap": 7,
    "cursor_blinking": 12,
    "cursor_visible": 25,
    "reverse_wraparound": 45,
    "backarrow_key_sends_bs": 67,
    "focus_reporting": 1004,
    "alternate_scroll_mode": 1007,
    "bracketed_paste": 2004,
    "grapheme_clustering": 2027,
}
_SHAPES = {("block", True): 1, ("block", False): 2, ("underline", True): 3, ("underline", False): 4, ("bar", True): 5}


def draw(history: Iterable[Row], screens: list[list[Row]], board: Any) -> bytes:
    """`screens` are the primary screen and, when it is shown, the alternate one."""
    parts = [flow([*history, *screens[0]])]
    if len(screens) > 1:
        parts.append("\x1b[?1049h\x1b[H")
        parts += [f"\x1b[{number}H{_cells(row.cells)}" for number, row in enumerate(screens[1], 1)]
    modes, blitter, cursor = board.modes, board.blitter, board.cursor
    for name, number in _MODES.items():
        parts.append(f"\x1b[?{number}{'h' if getattr(modes, name) else 'l'}")
    parts.append("\x1b>" if modes.numeric_keypad else "\x1b=")
    parts.append("\x1b[4h" if modes.insert_mode else "\x1b[4l")
    parts += [f"\x1b[?{number}h" for number in mouse_modes(board)]
    if (blitter.scroll_top, blitter.scroll_bottom) != (0, blitter.height - 1):
        parts.append(f"\x1b[{blitter.scroll_top + 1};{blitter.scroll_bottom + 1}r")
    parts.append(f"\x1b[{_SHAPES.get((cursor.shape, bool(modes.cursor_blinking)), 6)} q")
    parts.append(f"\x1b[{cursor.y + 1};{cursor.x + 1}H")
    if modes.origin_mode:
        parts.append(f"\x1b[?6h\x1b[{cursor.y - blitter.scroll_top + 1};{cursor.x + 1}H")
    return "".join(parts).encode(errors="replace")


def mouse_modes(board: Any) -> list[int]:
    protocol = {"X10": 9, "NORMAL": 1000, "BUTTON": 1002, "ANY": 1003}.get(board.mouse.protocol.name)
    encoding = {"UTF8": 1005, "SGR": 1006, "URXVT": 1015, "SGR_PIXELS": 1016}.get(board.mouse.encoding.name)
    return [number for number in (protocol, encoding) if number is not None]


def flow(rows: list[Row]) -> str:
    """Rows printed one after the other, so that those above the last screenful scroll off again."""
    parts = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        # A row that wraps is full, so the next character goes to the next row by itself; if there is one.
        wraps = row.wraps and after is not None and (after.wraps or any(cell != BLANK for cell in after.cells))
        parts.append(_cells(row.cells, is_full=wraps))
        if after is not None:
            parts.append("" if wraps else "\x1b[0m\r\n")
    return "".join(parts)


def _cells(cells: tuple[Cell, ...], is_full: bool = False) -> str:
    last = len(cells)
    while not is_full and last and cells[last - 1] == Cell():
        last -= 1
    parts: list[str] = []
    style, link = "", ""
    for cell in cells[:last]:
        if not cell.width:
            continue
        if cell.link != link:
            link = cell.link
            parts.append(f"\x1b]8;;{link}\x1b\\")
        found = sgr_of(cell)
        if found != style:
            style = found
            parts.append(f"\x1b[0{';' if style else ''}{style}m")
        parts.append(cell.text or " ")
    if link:
        parts.append("\x1b]8;;\x1b\\")
    if style:
        parts.append("\x1b[0m")
    return "".join(parts)
