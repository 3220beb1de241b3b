"""Operations on a split tree. Each gives a new tree; the old one stays as it was, so undo is keeping it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.layout.cells import (
    MIN_PANE_CELLS,
    WAYS,
    Area,
    Cell,
    Leaf,
    Orientation,
    Side,
    Split,
    adjust,
    areas,
    fit_children,
    fits,
    leaves,
    size_along,
    spare,
    with_size,
)


@dataclass(frozen=True, slots=True)
class Tree:
    """The panes of one tab in a window of `cols` × `rows`.

    The root is as large as the window; only in a window too small for its panes it is larger, as in tmux, and what
    does not fit is not seen.
    """

    root: Cell
    cols: int
    rows: int

    @classmethod
    def of(cls, pane: str, cols: int, rows: int) -> Tree:
        _check_size(cols, rows)
        return cls(Leaf(pane, cols, rows), cols, rows)

    @property
    def panes(self) -> tuple[str, ...]:
        """In their order, which is that of the presets."""
        return tuple(leaf.pane for leaf in leaves(self.root))

    def areas(self) -> Mapping[str, Area]:
        return dict(areas(self.root))

    def area(self, pane: str) -> Area:
        try:
            return self.areas()[pane]
        except KeyError:
            raise NotFound(f"no pane {pane!r} here", "panes: " + ", ".join(self.panes)) from None

    def split(
        self,
        pane: str,
        new: str,
        orientation: Orientation = "horizontal",
        *,
        size: int | None = None,
        is_before: bool = False,
        is_full: bool = False,
    ) -> Tree:
        """Put the pane `new` beside or below `pane`, `size` cells large or half of it.

        `is_before`: left of it or above it. `is_full`: along the whole window instead of beside one pane.
        """
        if new in self.panes:
            raise Conflict(f"pane {new!r} is there already", "give the new pane another id")
        self.area(pane)
        target = self.root if is_full else self._leaf(pane)
        old = size_along(target, orientation)
        if old < 2 * MIN_PANE_CELLS + 1:
            raise Conflict(f"pane {pane!r} has {old} cells, too few to split", "make it larger, or split another pane")
        first, second = _halves(old, size, is_before)
        kept = second if is_before else first
        if is_full and not fits(target, orientation, kept):
            raise Conflict(f"the panes here do not fit into {kept} cells", "give the new pane a smaller size")
        fresh = replace(Leaf(new, target.cols, target.rows))
        added = with_size(fresh, orientation, old - 1 - kept)
        shrunk = with_size(target, orientation, kept)
        shrunk = fit_children(shrunk)
        if is_full and isinstance(shrunk, Split) and shrunk.orientation == orientation:
            children = (added, *shrunk.children) if is_before else (*shrunk.children, added)
            return replace(self, root=with_size(replace(shrunk, children=children), orientation, old))
        pair = (added, shrunk) if is_before else (shrunk, added)
        if is_full:
            return replace(self, root=Split(orientation, pair, target.cols, target.rows))

        def put(cell: Cell) -> tuple[Cell, ...]:
            return pair

        return replace(self, root=_replaced(self.root, pane, put, orientation))

    def close(self, pane: str) -> Tree | None:
        """Without `pane`; its space goes to the neighbour before it, or after it. None: it was the last one."""
        self.area(pane)
        root = _closed(self.root, pane)
        # With a pane less the panes may fit into the window again.
        return None if root is None else replace(self, root=root).resize(self.cols, self.rows)

    def resize(self, cols: int, rows: int) -> Tree:
        """The window has another size: every pane takes its share of the change."""
        _check_size(cols, rows)
        root = self.root
        for way, wanted in zip(WAYS, (cols, rows), strict=True):
            change = wanted - size_along(root, way)
            root = adjust(root, way, max(change, -spare(root, way)))
        return Tree(root, cols, rows)

    def resize_pane(self, pane: str, *, cols: int | None = None, rows: int | None = None) -> Tree:
        """Give the pane this size where its neighbours can give or take the cells; as near as possible otherwise."""
        tree = self
        for way, wanted in zip(WAYS, (cols, rows), strict=True):
            if wanted is None:
                continue
            if wanted < MIN_PANE_CELLS:
                raise InvalidInput(f"a pane cannot have {wanted} cells", f"ask for {MIN_PANE_CELLS} or more")
            tree.area(pane)
            found = _parent_along(tree.root, pane, way)
            if found is None:
                continue
            parent, index = found
            change = wanted - size_along(parent.children[index], way)
            is_last = index == len(parent.children) - 1
            tree = tree._moved_border(pane, way, -change if is_last else change)
        return tree

    def push(self, pane: str, side: Side, cells: int = 1) -> Tree:
        """Move the border of the pane to that side by `cells`, like tmux's resize-pane -L -R -U -D."""
        self.area(pane)
        way: Orientation = "horizontal" if side in ("left", "right") else "vertical"
        return self._moved_border(pane, way, cells if side in ("right", "down") else -cells)

    def swap(self, first: str, second: str) -> Tree:
        """The two panes change places; sizes stay with the places."""
        self.area(first), self.area(second)
        names = {first: second, second: first}
        return replace(self, root=_renamed(self.root, names))

    def rotate(self, steps: int = 1) -> Tree:
        """Every pane moves `steps` places on, the last ones to the front."""
        panes = self.panes
        moved = [panes[(index - steps) % len(panes)] for index in range(len(panes))]
        return replace(self, root=_renamed(self.root, dict(zip(panes, moved, strict=True))))

    def _leaf(self, pane: str) -> Leaf:
        return next(leaf for leaf in leaves(self.root) if leaf.pane == pane)

    def _moved_border(self, pane: str, way: Orientation, change: int) -> Tree:
        found = _parent_along(self.root, pane, way)
        if found is None or change == 0:
            return self
        parent, index = found
        if index == len(parent.children) - 1:
            index -= 1
        children = list(parent.children)
        left = change
        while left:
            moved = _grown(children, index, way, left) if left > 0 else _shrunk(children, index, way, -left)
            if moved == 0:
                break
            left += -moved if left > 0 else moved
        return replace(self, root=_exchanged(self.root, parent, replace(parent, children=tuple(children))))


def _check_size(cols: int, rows: int) -> None:
    if cols < 1 or rows < 1 or cols > 10_000 or rows > 10_000:
        raise InvalidInput(f"a window cannot have {cols} × {rows} cells", "use 1 to 10000 each way")


def _halves(old: int, size: int | None, is_before: bool) -> tuple[int, int]:
    """Sizes left and right of the new border."""
    if size is None:
        second = (old + 1) // 2 - 1
    else:
        second = old - size - 1 if is_before else size
    second = max(MIN_PANE_CELLS, min(second, old - 1 - MIN_PANE_CELLS))
    return old - 1 - second, second


def _replaced(cell: Cell, pane: str, put: Callable[[Cell], tuple[Cell, ...]], way: Orientation) -> Cell:
    """The leaf replaced by two cells: among its siblings when they lie that way, else in a split of its own."""
    if isinstance(cell, Leaf):
        return Split(way, put(cell), cell.cols, cell.rows) if cell.pane == pane else cell
    children: list[Cell] = []
    for child in cell.children:
        if isinstance(child, Leaf) and child.pane == pane and cell.orientation == way:
            children += put(child)
        else:
            children.append(_replaced(child, pane, put, way))
    return replace(cell, children=tuple(children))


def _closed(cell: Cell, pane: str) -> Cell | None:
    if isinstance(cell, Leaf):
        return None if cell.pane == pane else cell
    children = list(cell.children)
    for index, child in enumerate(children):
        if isinstance(child, Leaf) and child.pane == pane:
            other = 1 if index == 0 else index - 1
            way = cell.orientation
            children[other] = adjust(children[other], way, size_along(child, way) + 1)
            del children[index]
            return children[0] if len(children) == 1 else replace(cell, children=tuple(children))
        kept = _closed(child, pane)
        if kept is not None and kept is not child:
            children[index] = kept
            return replace(cell, children=tuple(children))
    return cell


def _parent_along(cell: Cell, pane: str, way: Orientation) -> tuple[Split, int] | None:
    """The innermost split along `way` that holds the pane, and which of its children does."""
    if isinstance(cell, Leaf):
        return None
    for index, child in enumerate(cell.children):
        if any(leaf.pane == pane for leaf in leaves(child)):
            return _parent_along(child, pane, way) or ((cell, index) if cell.orientation == way else None)
    return None


def _grown(children: list[Cell], index: int, way: Orientation, needed: int) -> int:
    """Take cells for a child from the next one that has any, else from one before; how many were taken."""
    after = range(index + 1, len(children))
    before = range(index - 1, -1, -1)
    for giver in (*after, *before):
        if available := spare(children[giver], way):
            moved = min(available, needed)
            children[index] = adjust(children[index], way, moved)
            children[giver] = adjust(children[giver], way, -moved)
            return moved
    return 0


def _shrunk(children: list[Cell], index: int, way: Orientation, needed: int) -> int:
    """Give cells of a child, or of one before it, to the one after it; how many were given."""
    if index + 1 >= len(children):
        return 0
    for giver in range(index, -1, -1):
        if available := spare(children[giver], way):
            moved = min(available, needed)
            children[index + 1] = adjust(children[index + 1], way, moved)
            children[giver] = adjust(children[giver], way, -moved)
            return moved
    return 0


def _exchanged(cell: Cell, old: Split, new: Split) -> Cell:
    if cell is old:
        return new
    if isinstance(cell, Leaf):
        return cell
    return replace(cell, children=tuple(_exchanged(child, old, new) for child in cell.children))


def _renamed(cell: Cell, names: Mapping[str, str]) -> Cell:
    if isinstance(cell, Leaf):
        return replace(cell, pane=names.get(cell.pane, cell.pane))
    return replace(cell, children=tuple(_renamed(child, names) for child in cell.children))
