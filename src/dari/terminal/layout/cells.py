"""The split tree of one tab: immutable cells with sizes, one border line between neighbours, as tmux counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

Orientation = Literal["horizontal", "vertical"]
"""`horizontal`: side by side; `vertical`: one above the other (tmux -h and -v)."""

WAYS: tuple[Orientation, ...] = ("horizontal", "vertical")

MIN_PANE_CELLS = 1
"""Cells of the smallest pane, each way."""


@dataclass(frozen=True, slots=True)
class Leaf:
    pane: str
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Split:
    """Along its orientation the sizes of the children and one line between each two add up to its own size."""

    orientation: Orientation
    children: tuple[Cell, ...]
    cols: int
    rows: int


Cell = Leaf | Split


@dataclass(frozen=True, slots=True)
class Area:
    """Where a pane is in its window, in cells from the left and the top."""

    left: int
    top: int
    cols: int
    rows: int

    @property
    def right(self) -> int:
        """The first column after it."""
        return self.left + self.cols

    @property
    def bottom(self) -> int:
        return self.top + self.rows


def leaves(cell: Cell) -> Iterator[Leaf]:
    """The panes in their order: left to right, top to bottom inside each split."""
    if isinstance(cell, Leaf):
        yield cell
    else:
        for child in cell.children:
            yield from leaves(child)


def areas(cell: Cell, left: int = 0, top: int = 0) -> Iterator[tuple[str, Area]]:
    """Every pane with its area."""
    if isinstance(cell, Leaf):
        yield cell.pane, Area(left, top, cell.cols, cell.rows)
        return
    for child in cell.children:
        yield from areas(child, left, top)
        if cell.orientation == "horizontal":
            left += child.cols + 1
        else:
            top += child.rows + 1


def size_along(cell: Cell, way: Orientation) -> int:
    return cell.cols if way == "horizontal" else cell.rows


def with_size(cell: Cell, way: Orientation, size: int) -> Cell:
    """The cell with another number for its own size; children keep theirs."""
    return replace(cell, cols=size) if way == "horizontal" else replace(cell, rows=size)


def spare(cell: Cell, way: Orientation) -> int:
    """How many cells it can give away along `way` before a pane in it would be too small."""
    if isinstance(cell, Leaf):
        return max(0, size_along(cell, way) - MIN_PANE_CELLS)
    each = [spare(child, way) for child in cell.children]
    return sum(each) if cell.orientation == way else min(each)


def min_size(cell: Cell, way: Orientation) -> int:
    """The size along `way` with every pane in it at its smallest."""
    if isinstance(cell, Leaf):
        return MIN_PANE_CELLS
    each = [min_size(child, way) for child in cell.children]
    return sum(each) + len(each) - 1 if cell.orientation == way else max(each)


def adjust(cell: Cell, way: Orientation, change: int) -> Cell:
    """Grow or shrink by `change`, spread one cell at a time over the children that lie along `way`.

    Shrinking by more than `spare` is the caller's fault.
    """
    if change == 0:
        return cell
    grown = with_size(cell, way, size_along(cell, way) + change)
    if isinstance(grown, Leaf):
        return grown
    if grown.orientation != way:
        return replace(grown, children=tuple(adjust(child, way, change) for child in grown.children))
    children = list(grown.children)
    left = change
    while left:
        for index, child in enumerate(children):
            if left == 0:
                break
            if left > 0:
                children[index] = adjust(child, way, 1)
                left -= 1
            elif spare(child, way) > 0:
                children[index] = adjust(child, way, -1)
                left += 1
    return replace(grown, children=tuple(children))


def fit_children(cell: Cell) -> Cell:
    """Children in proportion to their old sizes, so that they fill the cell's own size again.

    Every pane keeps at least one cell each way, provided that the cell is not below its `smallest` size.
    """
    if isinstance(cell, Leaf):
        return cell
    way = cell.orientation
    across: Orientation = "vertical" if way == "horizontal" else "horizontal"
    count = len(cell.children)
    size = size_along(cell, way)
    previous = sum(size_along(child, way) for child in cell.children) + count - 1
    left = size
    children: list[Cell] = []
    for index, child in enumerate(cell.children):
        # tmux's share alone can leave a nested split, or those after it, too small for their panes.
        rest = sum(min_size(other, way) + 1 for other in cell.children[index + 1 :])
        part = _share(child, way, previous, size, count - index, left)
        part = max(min_size(child, way), min(part, left - rest))
        left -= part + 1
        child = with_size(with_size(child, way, part), across, size_along(cell, across))
        children.append(fit_children(child))
    return replace(cell, children=tuple(children))


def fits(cell: Cell, way: Orientation, size: int) -> bool:
    """Whether `fit_children` would leave every pane large enough if the cell had this size along `way`.

    Shares are in proportion, so this can be False although the smallest sizes would add up to less.
    """
    if isinstance(cell, Leaf):
        return size >= MIN_PANE_CELLS
    if cell.orientation != way:
        return all(fits(child, way, size) for child in cell.children)
    count = len(cell.children)
    if size < count * (MIN_PANE_CELLS + 1) - 1:
        return False
    left = size
    for index, child in enumerate(cell.children):
        part = _share(child, way, size_along(cell, way), size, count - index, left)
        left -= part if index == count - 1 else part + 1
        if left < 0 or not fits(child, way, part):
            return False
    return True


def _share(cell: Cell, way: Orientation, previous: int, size: int, count_left: int, size_left: int) -> int:
    if count_left == 1:
        return size_left
    old = size_along(cell, way)
    least = max((MIN_PANE_CELLS + 1) * (count_left - 1), old - spare(cell, way))
    return max(MIN_PANE_CELLS, min(old * size // previous, size_left - least))


Side = Literal["left", "right", "up", "down"]


def find_adjacent(areas: Mapping[str, Area], cols: int, rows: int, pane: str, side: Side) -> list[str]:
    """The panes that touch that border; at the edge of the window those at the other edge, as tmux goes around."""
    here = areas[pane]
    found = []
    for other, there in areas.items():
        if side in ("left", "right"):
            shares = there.top <= here.bottom and there.bottom > here.top
            edge = here.left if side == "left" else here.right + 1
            if side == "left" and here.left == 0:
                edge = cols + 1
            elif side == "right" and here.right >= cols:
                edge = 0
            touches = (there.right + 1 if side == "left" else there.left) == edge
        else:
            shares = there.left <= here.right and there.right > here.left
            edge = here.top if side == "up" else here.bottom + 1
            if side == "up" and here.top == 0:
                edge = rows + 1
            elif side == "down" and here.bottom >= rows:
                edge = 0
            touches = (there.bottom + 1 if side == "up" else there.top) == edge
        if other != pane and shares and touches:
            found.append(other)
    return found
