"""The layout as it is now: where a new pane goes, and how large every pane is. Only the multiplexer changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dari.errors import Conflict
from dari.terminal.layout.cells import Area, Orientation
from dari.terminal.layout.presets import Preset
from dari.terminal.layout.windows import Layout, Tab, Window

COLS, ROWS = 200, 50
"""Size of a window without a viewer: two panes side by side still show lines of 99 columns."""
LEAST_COLS, LEAST_ROWS = 40, 8
"""A split that would leave less opens a tab instead."""

Where = Literal["split", "tab", "window"]


@dataclass(frozen=True, slots=True)
class PanePlacement:
    """Where a new pane goes: beside `target` (the focused pane when empty), or into a tab or window of its own."""

    target: str = ""
    direction: Orientation = "horizontal"
    where: Where = "split"
    size: int | None = None
    is_before: bool = False
    is_full: bool = False
    focus: bool = True
    title: str = ""
    is_strict: bool = False
    """Refuse when there is no room, instead of opening a tab."""


class WindowManager:
    """Holds one immutable `layout` after the other, so a reader may keep the one that it has."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._layout = Layout()
        self._on_change = on_change
        self._tabs = 0
        self._count = 0

    @property
    def layout(self) -> Layout:
        return self._layout

    @layout.setter
    def layout(self, layout: Layout) -> None:
        is_other = layout != self._layout
        self._layout = layout
        if is_other:
            self._on_change()

    @property
    def all(self) -> tuple[Window, ...]:
        return self.layout.windows

    @property
    def focused(self) -> str:
        """The pane that has the focus; empty when there is none."""
        return self.layout.focused or ""

    def place(self, pane: str) -> tuple[Window, Tab]:
        return self.layout.find(pane)

    def area(self, pane: str) -> Area:
        """Where the pane is shown: its own place, or the whole tab while it is zoomed."""
        _, tab = self.place(pane)
        return tab.areas().get(pane) or tab.tree.area(pane)

    def size_of(self, pane: str) -> tuple[int, int]:
        area = self.area(pane)
        return area.cols, area.rows

    def is_zoomed(self, pane: str) -> bool:
        _, tab = self.place(pane)
        return tab.is_zoomed and tab.focused == pane

    def add(self, new: str, spot: PanePlacement, target: str = "") -> None:
        """Make room for the pane `new`."""
        if not target or spot.where == "window":
            self._add_window(new, spot)
            return
        window, tab = self.place(target)
        split = None if spot.where == "tab" else self._split(tab, new, target, spot)
        if split is not None:
            self.layout = split
        else:
            self._tabs += 1
            tab_id = f"t{self._tabs}"
            self.layout = self.layout.open_tab(window.id, tab_id, new, name=spot.title, is_focused=spot.focus)
        if spot.focus:
            self.focus(new)

    def _split(self, tab: Tab, new: str, target: str, spot: PanePlacement) -> Layout | None:
        """None when there is too little room and a tab will do."""
        try:
            layout = self.layout.split(
                target,
                new,
                spot.direction,
                size=spot.size,
                is_before=spot.is_before,
                is_full=spot.is_full,
                is_focused=spot.focus,
            )
        except Conflict:
            if spot.is_strict:
                raise
            return None
        if spot.is_strict or spot.size is not None:
            return layout
        tree = layout.tab(tab.id).tree
        is_roomy = all(
            area.cols >= min(LEAST_COLS, tree.cols) and area.rows >= min(LEAST_ROWS, tree.rows)
            for area in (tree.area(new), tree.area(target))
        )
        return layout if is_roomy else None

    def _add_window(self, new: str, spot: PanePlacement) -> None:
        self._count += 1
        self._tabs += 1
        before = self.layout
        ids = f"w{self._count}", f"t{self._tabs}"
        self.layout = before.open_window(*ids, new, COLS, ROWS, tab_name=spot.title)
        if before.focused is not None and not spot.focus:
            self.layout = Layout(self.layout.windows, before.active)

    def move(self, pane: str, spot: PanePlacement, target: str) -> None:
        """Take the pane from where it is to beside another one, or into a tab of the other one's window."""
        if pane == target and spot.where == "split":
            raise Conflict(f"pane {pane} cannot be beside itself", "name another pane")
        before = self.layout
        window, _ = self.place(target)
        try:
            self.layout = before.close(pane)
            if all(other.id != window.id for other in self.all):  # it was all of that window
                raise Conflict(f"window {window.id} has no other pane", "name a pane of another window")
            beside = target if target != pane else self.layout.window(window.id).tab.focused
            self.add(pane, spot, beside)
        except BaseException:
            self.layout = before
            raise

    def remove(self, pane: str) -> None:
        self.layout = self.layout.close(pane)

    def focus(self, pane: str) -> None:
        self.layout = self.layout.focus(pane)

    def zoom(self, pane: str, is_zoomed: bool | None = None) -> bool:
        """Fill the tab with the pane, or not; None turns it round. Whether it does now."""
        _, tab = self.place(pane)
        self.put(tab.zoom(pane, is_zoomed))
        return self.is_zoomed(pane)

    def resize(self, pane: str, cols: int | None, rows: int | None) -> None:
        """Give the pane this size: from its neighbours, else by making the window larger or smaller."""
        window, tab = self.place(pane)
        resized = tab.resize_pane(pane, cols=cols, rows=rows)
        area = resized.tree.area(pane)
        more_cols = 0 if cols is None else cols - area.cols
        more_rows = 0 if rows is None else rows - area.rows
        if more_cols or more_rows:
            self.resize_window(window.id, window.cols + more_cols, window.rows + more_rows)
            _, tab = self.place(pane)
            resized = tab.resize_pane(pane, cols=cols, rows=rows)
        self.put(resized)

    def resize_window(self, window_id: str, cols: int, rows: int) -> None:
        """A viewer shows it in a terminal of this size."""
        self.layout = self.layout.resize_window(window_id, cols, rows)

    def arrange(self, pane: str, preset: Preset, main_size: int | str | None = None) -> None:
        """All panes of the tab that the pane is in, anew."""
        _, tab = self.place(pane)
        self.put(tab.arrange(preset, main_size))

    def put(self, tab: Tab) -> None:
        """Another state of a tab that is there, with the same panes."""
        now = self.layout.tab(tab.id)
        if sorted(tab.panes) != sorted(now.panes) or sorted(tab.recent) != sorted(now.panes):
            raise Conflict(f"tab {tab.id} has panes {', '.join(now.panes)}, not {', '.join(tab.panes)}", "use the same")
        self.layout = self.layout.change(tab)

    def show(self, tab_id: str) -> None:
        """Bring a tab to the front of its window."""
        self.layout = self.layout.focus_tab(tab_id)
