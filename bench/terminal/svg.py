"""A grid as the SVG that terminal recorders write: a rectangle and a text for each run of equal style."""

from collections.abc import Iterator
from html import escape

from dari.terminal.engine.grid import Cell, Grid, Row


def write(grid: Grid, width: int, height: int) -> str:
    """`width` and `height` are those of a cell in pixels."""
    total = f'width="{grid.cols * width}" height="{len(grid) * height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {total}>',
        "<style>text{white-space:pre}</style>",
        f'<rect {total} fill="#000000"/>',
        f'<g font-family="monospace" font-size="{height * 0.8:g}">',
    ]
    for number, row in enumerate(grid.rows):
        for col, cells in _runs(row):
            x, y, first = col * width, number * height, cells[0]
            foreground, background = first.fg or (229, 229, 229), first.bg
            if first.inverse:
                foreground, background = background or (0, 0, 0), foreground
            if background:
                parts.append(
                    f'<rect x="{x}" y="{y}" width="{len(cells) * width}" height="{height}" fill="{_hex(background)}"/>'
                )
            text = "".join(cell.text or (" " if cell.width else "") for cell in cells)
            if text.strip():
                bold = ' font-weight="bold"' if first.bold else ""
                parts.append(
                    f'<text x="{x}" y="{y + height * 0.75:g}" fill="{_hex(foreground)}"{bold}>{escape(text)}</text>'
                )
    return "\n".join([*parts, "</g></svg>"])


def _runs(row: Row) -> Iterator[tuple[int, list[Cell]]]:
    begin, run = 0, list[Cell]()
    for col, cell in enumerate(row.cells):
        if run and _look(cell) != _look(run[0]) and cell.width:
            yield begin, run
            begin, run = col, []
        run.append(cell)
    if run:
        yield begin, run


def _look(cell: Cell) -> tuple[object, ...]:
    return cell.fg, cell.bg, cell.bold, cell.inverse


def _hex(color: tuple[int, int, int]) -> str:
    return "#" + bytes(color).hex()
