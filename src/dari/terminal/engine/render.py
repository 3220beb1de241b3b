"""Rows of cells written out with their colours: as SGR for terminals, as HTML for pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from dari.terminal.engine.grid import Cell, Grid, Rgb, Row, joined_cells

_SGR_UNDERLINES = {"single": "4", "double": "21", "curly": "4:3", "dotted": "4:4", "dashed": "4:5"}
_CSS_UNDERLINES = {"single": "", "double": " double", "curly": " wavy", "dotted": " dotted", "dashed": " dashed"}


def to_vt(grid: Grid, *, unwrap: bool = False) -> str:
    """SGR and text only, so that showing it can neither move a cursor nor ask a terminal anything."""
    lines = []
    for cells in _lines(grid, unwrap):
        parts = []
        for style, run in groupby(cells, sgr_of):
            text = _text(run)
            parts.append(f"\x1b[{style}m{text}\x1b[0m" if style else text)
        lines.append("".join(parts))
    return "\n".join(lines)


def to_html(grid: Grid, *, unwrap: bool = False) -> str:
    """A `<pre>`; everything that came from the program is escaped, links are shown and not made active."""
    lines = []
    for cells in _lines(grid, unwrap):
        parts = []
        for style, run in groupby(cells, _css):
            text = escape(_text(run), quote=False)
            parts.append(f'<span style="{style}">{text}</span>' if style else text)
        lines.append("".join(parts))
    return "<pre>" + "\n".join(lines) + "</pre>"


def _lines(grid: Grid, unwrap: bool) -> Iterator[list[Cell]]:
    line: list[Cell] = []
    for row, after in zip(grid.rows, [*grid.rows[1:], None], strict=True):
        line += joined_cells(row, after) if unwrap and row.wraps else _trimmed(row)
        if not (unwrap and row.wraps):
            yield line
            line = []
    if line:
        yield line


def _trimmed(row: Row) -> list[Cell]:
    cells = list(row.cells)
    while cells and cells[-1].text in ("", " ") and cells[-1].width == 1 and not _css(cells[-1]):
        cells.pop()
    return cells


def _text(cells: Iterable[Cell]) -> str:
    return "".join([cell.text or (" " if cell.width else "") for cell in cells])


def sgr_of(cell: Cell) -> str:
    codes = []
    for is_set, code in (
        (cell.bold, "1"),
        (cell.dim, "2"),
        (cell.italic, "3"),
        (cell.blink, "5"),
        (cell.inverse, "7"),
        (cell.invisible, "8"),
        (cell.strike, "9"),
        (cell.overline, "53"),
    ):
        if is_set:
            codes.append(code)
    if cell.underline:
        codes.append(_SGR_UNDERLINES[cell.underline])
    for number, color in (("38", cell.fg), ("48", cell.bg), ("58", cell.underline_color)):
        if color is not None:
            codes.append(f"{number};2;{color[0]};{color[1]};{color[2]}")
    return ";".join(codes)


def _css(cell: Cell) -> str:
    fg, bg = _hex(cell.fg), _hex(cell.bg)
    if cell.inverse:
        fg, bg = bg or "Canvas", fg or "CanvasText"
    rules = []
    if fg:
        rules.append(f"color:{fg}")
    if bg:
        rules.append(f"background:{bg}")
    for is_set, rule in (
        (cell.bold, "font-weight:bold"),
        (cell.dim, "opacity:.6"),
        (cell.italic, "font-style:italic"),
        (cell.invisible, "visibility:hidden"),
    ):
        if is_set:
            rules.append(rule)
    lines = [
        word
        for is_set, word in ((cell.underline, "underline"), (cell.strike, "line-through"), (cell.overline, "overline"))
        if is_set
    ]
    if lines:
        rules.append(f"text-decoration:{' '.join(lines)}{_CSS_UNDERLINES.get(cell.underline, '')}")
    return ";".join(rules)


def _hex(color: Rgb | None) -> str:
    return "" if color is None else "#{:02x}{:02x}{:02x}".format(*color)
