"""Windows with tabs with panes: which are open, focused and zoomed, and what closes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dari.errors import Conflict, NotFound
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
        """The visible panes: all, or only the zoomed one over the whole window."""
        if self.is_zoomed:
            return {self.focused: Area(0, 0, self.tree.cols, self.tree.rows)}
        return self.tree.areas()

    def size_of(self, pane: str) -> tuple[int, int]:
        """Columns and rows of the pane's program; a pane behind a zoomed one keeps its own."""
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


@dataclass(frozen=True, slots=True)
class Window:
    id: str
    name: str
    cols: int
    rows: int
    tabs: tuple[Tab, ...]
    active: str
    """The id of the tab that is shown."""

    @property
    def tab(self) -> Tab:
        return next(tab for tab in self.tabs if tab.id == self.active)


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that is open. Operations name a pane, a tab or a window by its id."""

    windows: tuple[Window, ...] = ()
    active: str = ""

    @property
    def panes(self) -> tuple[str, ...]:
        return tuple(pane for window in self.windows for tab in window.tabs for pane in tab.panes)

    @property
    def focused(self) -> str | None:
        """The pane that is meant when none is named; None when nothing is open."""
        return self.window(self.active).tab.focused if self.windows else None

    def window(self, id: str) -> Window:
        for window in self.windows:
            if window.id == id:
                return window
        raise NotFound(f"no window {id!r}", "open: " + (", ".join(each.id for each in self.windows) or "none"))

    def tab(self, id: str) -> Tab:
        tabs = [tab for window in self.windows for tab in window.tabs]
        for tab in tabs:
            if tab.id == id:
                return tab
        raise NotFound(f"no tab {id!r}", "open: " + (", ".join(each.id for each in tabs) or "none"))

    def find(self, pane: str) -> tuple[Window, Tab]:
        """Where a pane is."""
        for window in self.windows:
            for tab in window.tabs:
                if pane in tab.panes:
                    return window, tab
        known = ", ".join(self.panes) or "none"
        raise NotFound(f"no pane {pane!r}", f"list the panes with crux_list_panes (open: {known})")

    def open_window(
        self, id: str, tab_id: str, pane: str, cols: int, rows: int, *, name: str = "", tab_name: str = ""
    ) -> Layout:
        """A new window with one tab and one pane, which gets the focus."""
        self._check_new(window=id, tab=tab_id, pane=pane)
        window = Window(id, name or id, cols, rows, (Tab.of(tab_id, tab_name or tab_id, pane, cols, rows),), tab_id)
        return Layout((*self.windows, window), id)

    def open_tab(self, window_id: str, tab_id: str, pane: str, *, name: str = "", is_focused: bool = True) -> Layout:
        """A new tab after the others."""
        self._check_new(tab=tab_id, pane=pane)
        window = self.window(window_id)
        tab = Tab.of(tab_id, name or tab_id, pane, window.cols, window.rows)
        opened = replace(window, tabs=(*window.tabs, tab), active=tab_id if is_focused else window.active)
        return self._put_window(opened, self.active)

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
    ) -> Layout:
        self._check_new(pane=new)
        _, tab = self.find(pane)
        return self._put_tab(
            tab.split(pane, new, orientation, size=size, is_before=is_before, is_full=is_full, is_focused=is_focused)
        )

    def close(self, pane: str) -> Layout:
        """Without the pane; an empty tab goes with it, and an empty window with that."""
        window, tab = self.find(pane)
        kept = tab.close(pane)
        if kept is not None:
            return self._put_tab(kept)
        index = window.tabs.index(tab)
        tabs = window.tabs[:index] + window.tabs[index + 1 :]
        if tabs:
            active = tabs[max(0, index - 1)].id if window.active == tab.id else window.active
            return self._put_window(replace(window, tabs=tabs, active=active), self.active)
        windows = tuple(other for other in self.windows if other.id != window.id)
        active = self.active if self.active != window.id else (windows[-1].id if windows else "")
        return Layout(windows, active)

    def focus(self, pane: str) -> Layout:
        """The pane, its tab and its window come to the front."""
        window, tab = self.find(pane)
        return self._put_tab(tab.focus(pane), is_shown=True)._put_active(window.id)

    def focus_tab(self, id: str) -> Layout:
        """The tab comes to the front as it is, with its window."""
        return self.focus(self.tab(id).focused)

    def move_tab(self, id: str, index: int) -> Layout:
        """A tab to another place among the tabs of its window; beyond the last one it becomes the last."""
        window = next((each for each in self.windows if any(tab.id == id for tab in each.tabs)), None)
        tab = self.tab(id)
        assert window is not None
        rest = [each for each in window.tabs if each.id != id]
        rest.insert(index, tab)
        return self._put_window(replace(window, tabs=tuple(rest)), self.active)

    def change(self, tab: Tab) -> Layout:
        """The layout with this state of a tab instead of the one it has (`tab.zoom(…)`, `tab.arrange(…)` …)."""
        self.tab(tab.id)
        return self._put_tab(tab)

    def resize_window(self, id: str, cols: int, rows: int) -> Layout:
        window = self.window(id)
        tabs = tuple(tab.resize(cols, rows) for tab in window.tabs)
        return self._put_window(replace(window, cols=cols, rows=rows, tabs=tabs), self.active)

    def rename(self, id: str, name: str) -> Layout:
        """Name a tab or a window."""
        for window in self.windows:
            if window.id == id:
                return self._put_window(replace(window, name=name), self.active)
        return self._put_tab(replace(self.tab(id), name=name))

    def _put_tab(self, tab: Tab, is_shown: bool = False) -> Layout:
        for window in self.windows:
            if any(other.id == tab.id for other in window.tabs):
                tabs = tuple(tab if other.id == tab.id else other for other in window.tabs)
                changed = replace(window, tabs=tabs, active=tab.id if is_shown else window.active)
                return self._put_window(changed, self.active)
        raise NotFound(f"no tab {tab.id!r}", "it was closed")

    def _put_window(self, window: Window, active: str) -> Layout:
        return Layout(tuple(window if other.id == window.id else other for other in self.windows), active)

    def _put_active(self, active: str) -> Layout:
        return Layout(self.windows, active)

    def _check_new(self, *, window: str = "", tab: str = "", pane: str = "") -> None:
        tabs = {other.id for each in self.windows for other in each.tabs}
        for kind, id, taken in (
            ("window", window, {other.id for other in self.windows}),
            ("tab", tab, tabs),
            ("pane", pane, set(self.panes)),
        ):
            if id and id in taken:
                raise Conflict(f"{kind} {id!r} is there already", "give the new one another id")
