"""One tab: a tree of panes, which of them has the focus, and whether that one is zoomed. Immutable, like the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dari.terminal.layout.cells import Area, Orientation, Side, find_adjacent
from dari.terminal.layout.presets import Preset, arrange
from dari.terminal.layout.tree import Tree


@dataclass(frozen=True, slots=True)
class Tab:
    """`recent` holds the panes by when they had the focus, the focused one first."""

    id: str
    name: str
    tree: Tree
    recent: tuple[str, ...]
    is_zoomed: bool = False

    @classmethod
    def of(cls, id: str, name: str, pane: str, cols: int, rows: int) -> Tab:
        return cls(id, name, Tree.of(pane, cols, rows), (pane,))

    @property
    def focused(self) -> str:
        return self.recent[0]

    @property
    def last(self) -> str | None:
        """The pane that had the focus before."""
        return self.recent[1] if len(self.recent) > 1 else None

    @property
    def panes(self) -> tuple[str, ...]:
        return self.tree.panes

    def areas(self) -> Mapping[str, Area]:
        """What is seen: all panes, or only the zoomed one over the whole window."""
        if self.is_zoomed:
            return {self.focused: Area(0, 0, self.tree.cols, self.tree.rows)}
        return self.tree.areas()

    def size_of(self, pane: str) -> tuple[int, int]:
        """Columns and rows that the program in the pane is told; a pane behind a zoomed one keeps its own."""
        area = self.areas().get(pane) or self.tree.area(pane)
        return area.cols, area.rows

    def focus(self, pane: str) -> Tab:
        """Another focus ends a zoom."""
        self.tree.area(pane)
        rest = tuple(other for other in self.recent if other != pane)
        return replace(self, recent=(pane, *rest), is_zoomed=self.is_zoomed and pane == self.focused)

    def focus_side(self, side: Side) -> Tab:
        """The neighbour on that side, among several the one that had the focus last; beyond the edge it goes around."""
        root = self.tree.root
        found = find_adjacent(self.tree.areas(), root.cols, root.rows, self.focused, side)
        if not found:
            return self
        return self.focus(min(found, key=self.recent.index))

    def split(
        self,
        pane: str,
        new: str,
        orientation: Orientation,
        *,
        size: int | None = None,
        is_before: bool = False,
        is_full: bool = False,
        is_focused: bool = True,
    ) -> Tab:
        tree = self.tree.split(pane, new, orientation, size=size, is_before=is_before, is_full=is_full)
        return self._with(tree, (new, *self.recent) if is_focused else (*self.recent, new))

    def close(self, pane: str) -> Tab | None:
        """Without the pane; the focus goes to the one that had it before. None: it was the last one."""
        tree = self.tree.close(pane)
        if tree is None:
            return None
        recent = tuple(other for other in self.recent if other != pane)
        return replace(self._with(tree, recent), is_zoomed=self.is_zoomed and pane != self.focused)

    def zoom(self, pane: str, is_zoomed: bool | None = None) -> Tab:
        """Zoom the pane or back; None turns it around. A pane that is alone is never zoomed."""
        tab = self.focus(pane)
        wanted = not (self.is_zoomed and self.focused == pane) if is_zoomed is None else is_zoomed
        return replace(tab, is_zoomed=wanted and len(self.panes) > 1)

    def resize_pane(self, pane: str, *, cols: int | None = None, rows: int | None = None) -> Tab:
        return self._with(self.tree.resize_pane(pane, cols=cols, rows=rows), self.recent)

    def push(self, pane: str, side: Side, cells: int = 1) -> Tab:
        return self._with(self.tree.push(pane, side, cells), self.recent)

    def swap(self, first: str, second: str) -> Tab:
        """The focus stays at its place, so it moves to the pane that came there."""
        return self._with(self.tree.swap(first, second), self.recent)

    def arrange(self, preset: Preset, main_size: int | str | None = None) -> Tab:
        return self._with(arrange(self.tree, preset, main_size), self.recent)

    def resize(self, cols: int, rows: int) -> Tab:
        return replace(self, tree=self.tree.resize(cols, rows))

    def _with(self, tree: Tree, recent: tuple[str, ...]) -> Tab:
        return replace(self, tree=tree, recent=recent, is_zoomed=False)
