"""A tree as tmux writes it (`window_layout`): `bb62,159x48,0,0{79x48,0,0,79x48,80,0}`, with its checksum."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from dari.errors import InvalidInput
from dari.terminal.layout.cells import MIN_PANE_CELLS, Cell, Leaf, Orientation, Split, leaves, size_along
from dari.terminal.layout.tree import Tree

_CELL = re.compile(r"(\d{1,5})x(\d{1,5}),(\d{1,5}),(\d{1,5})(?:,(\d+)(?![\dx]))?")


def write_layout(root: Cell, number: Callable[[str], int]) -> str:
    """The text; `number` gives the number that tmux would show for a pane."""
    text = _written(root, 0, 0, number)
    return f"{_checksum(text):04x},{text}"


def read_layout(text: str, panes: Sequence[str]) -> Tree:
    """The tree with these panes in order, as select-layout does; the numbers in the text are not looked at."""
    match = re.fullmatch(r"([0-9a-f]{4}),(.*)", text.strip())
    if match is None or int(match[1], 16) != _checksum(match[2]):
        raise InvalidInput(
            f"a layout must be as list-windows prints it, checksum included, got {text!r}", "copy it from list-windows"
        )
    root, end = _read(match[2], 0, iter(panes))
    if end != len(match[2]):
        raise InvalidInput(f"{text!r} has more after the layout", "take it from list-windows")
    count = len(list(leaves(root)))
    if count != len(panes):
        raise InvalidInput(f"the layout has {count} panes, here are {len(panes)}", "use a layout for as many panes")
    return Tree(root, root.cols, root.rows)


def _written(cell: Cell, left: int, top: int, number: Callable[[str], int]) -> str:
    place = f"{cell.cols}x{cell.rows},{left},{top}"
    if isinstance(cell, Leaf):
        return f"{place},{number(cell.pane)}"
    parts: list[str] = []
    for child in cell.children:
        parts.append(_written(child, left, top, number))
        if cell.orientation == "horizontal":
            left += child.cols + 1
        else:
            top += child.rows + 1
    opening, closing = "{}" if cell.orientation == "horizontal" else "[]"
    return f"{place}{opening}{','.join(parts)}{closing}"


def _read(text: str, at: int, panes: Iterator[str]) -> tuple[Cell, int]:
    match = _CELL.match(text, at)
    if match is None:
        raise InvalidInput(f"a layout must have a cell here, got {text[at : at + 20]!r}", "copy it from list-windows")
    cols, rows = int(match[1]), int(match[2])
    at = match.end()
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        if cols < MIN_PANE_CELLS or rows < MIN_PANE_CELLS:
            raise InvalidInput(f"a pane of {cols}x{rows} cells", "use at least one cell each way")
        return Leaf(next(panes, ""), cols, rows), at
    closing = "}" if opening == "{" else "]"
    children: list[Cell] = []
    while True:
        child, at = _read(text, at + 1, panes)
        children.append(child)
        if text[at : at + 1] == closing:
            break
        if text[at : at + 1] != ",":
            raise InvalidInput(f"{closing!r} is missing in a layout", "take it from list-windows")
    split = Split("horizontal" if opening == "{" else "vertical", tuple(children), cols, rows)
    way = split.orientation
    across: Orientation = "vertical" if way == "horizontal" else "horizontal"
    along = sum(size_along(child, way) for child in children) + len(children) - 1
    if along != size_along(split, way) or any(
        size_along(child, across) != size_along(split, across) for child in children
    ):
        raise InvalidInput("the sizes in the layout do not add up", "take it from list-windows")
    return split, at + 1


def _checksum(text: str) -> int:
    total = 0
    for char in text.encode():
        total = (total >> 1) + ((total & 1) << 15)
        total = (total + char) & 0xFFFF
    return total
