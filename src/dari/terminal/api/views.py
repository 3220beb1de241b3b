"""Windows, tabs and panes as rows, and operations on them for people and scripts; `attach.py` shows them live."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import InvalidInput
from dari.terminal.api.commands import Success
from dari.terminal.api.panes import PaneInfo, describe_pane
from dari.terminal.layout.cells import Leaf, Orientation, Side
from dari.terminal.layout.notation import read_layout, write_layout
from dari.terminal.layout.windows import Tab
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.pane import Pane
from dari.terminal.window_manager import PanePlacement, Where


class Rows(Struct, frozen=True):
    """Rows `start` … `end` of a pane, both included; 0 is the top of the screen, negative ones scrolled off it."""

    text: str
    start: int
    end: int
    rows: int
    history: int
    cursor_row: int = 0


class PaneOverview(Struct, frozen=True, kw_only=True):
    info: PaneInfo
    history: int
    history_limit: int
    cursor_col: int
    cursor_row: int
    is_full_screen: bool
    words: list[str]
    """What was started in it."""


class TabOverview(Struct, frozen=True, kw_only=True):
    """`recent` holds the panes by when they had the focus, the focused one first; `layout` is as tmux writes it."""

    id: str
    name: str
    layout: str
    visible_layout: str
    is_zoomed: bool
    panes: list[str]
    recent: list[str]


class WindowOverview(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    cols: int
    rows: int
    active: str
    tabs: list[TabOverview]
    viewers: int = 0


class Overview(Struct, frozen=True):
    """Everything that is open."""

    windows: list[WindowOverview]
    panes: list[PaneOverview]
    active: str = ""
    focused: str = ""
    pid: int = 0
    socket: str = ""
    started_unix: float = 0


def _nobody(window_id: str) -> int:
    return 0


class ViewsApi:
    def __init__(self, multiplexer: Multiplexer, viewers: Callable[[str], int] = _nobody) -> None:
        self._all = multiplexer
        self._viewers = viewers
        self._began = time.time()

    @expose("crux:pane/get-rows", "read")
    async def get_rows(
        self, pane_id: str = "", start: int = 0, end: int | None = None, escapes: bool = False, unwrap: bool = False
    ) -> Rows:
        """Rows from `start` to `end`, both included, the bottom when it is left out; beyond what is kept none."""
        engine = self._all.find(pane_id).engine
        first = max(-engine.history, start)
        last = engine.rows - 1 if end is None else min(end, engine.rows - 1)
        text = engine.text(first, last + 1, form="vt" if escapes else "plain", unwrap=unwrap) if first <= last else ""
        return Rows(text, first, last, engine.rows, engine.history, engine.cursor.row)

    @expose("crux:window/list", "read")
    async def overview(self) -> Overview:
        """Every window with its tabs, and every pane."""
        layout = self._all.settled_layout
        windows = [
            WindowOverview(
                id=window.id,
                name=window.name,
                cols=window.cols,
                rows=window.rows,
                active=window.active,
                tabs=[self._tab(tab) for tab in window.tabs],
                viewers=self._viewers(window.id),
            )
            for window in layout.windows
        ]
        panes = [self._pane(pane) for pane in self._all.panes.values()]
        socket = str(self._all.socket_path or "")
        return Overview(windows, panes, layout.active, layout.focused or "", os.getpid(), socket, self._began)

    @expose("crux:pane/push", "control")
    async def push_border(self, side: Side, pane_id: str = "", cells: int = 1) -> PaneInfo:
        """Move the border of a pane to that side by so many cells."""
        pane = self._all.find(pane_id)
        _, tab = self._all.windows.place(pane.id)
        return self._put(tab.push(pane.id, side, cells), pane)

    @expose("crux:pane/fit", "control")
    async def fit_pane(self, pane_id: str = "", cols: int | None = None, rows: int | None = None) -> PaneInfo:
        """A size from the neighbours of the pane, as far as they can give; the window stays as it is."""
        pane = self._all.find(pane_id)
        _, tab = self._all.windows.place(pane.id)
        return self._put(tab.resize_pane(pane.id, cols=cols, rows=rows), pane)

    @expose("crux:pane/swap", "control")
    async def swap_panes(self, pane_id: str, other_id: str) -> PaneInfo:
        """Two panes of one tab change places."""
        pane, other = self._all.find(pane_id), self._all.find(other_id)
        _, tab = self._all.windows.place(pane.id)
        return self._put(tab.swap(pane.id, other.id), pane)

    @expose("crux:pane/move", "control")
    async def move_pane(
        self,
        pane_id: str,
        target: str,
        where: Where = "split",
        direction: Orientation = "vertical",
        size: int = 0,
        is_before: bool = False,
        is_full: bool = False,
        focus: bool = True,
        title: str = "",
    ) -> PaneInfo:
        """A pane to beside another one, or into a tab of that one's window; what runs in it is not disturbed."""
        pane, other = self._all.find(pane_id), self._all.find(target)
        spot = PanePlacement(other.id, direction, where, size or None, is_before, is_full, focus, title, is_strict=True)
        self._all.windows.move(pane.id, spot, other.id)
        self._all.fit()
        return self._info(pane)

    @expose("crux:pane/focus-side", "control")
    async def focus_side(self, side: Side, pane_id: str = "") -> PaneInfo:
        """The focus goes to the neighbour of the pane on that side, around the edge when there is none."""
        pane = self._all.find(pane_id)
        _, tab = self._all.windows.place(pane.id)
        focused = tab.focus(pane.id).focus_side(side).focused
        self._all.windows.focus(focused)
        self._all.fit()
        return self._info(self._all.find(focused))

    @expose("crux:window/show", "control")
    async def show_tab(self, tab_id: str) -> Success:
        """A tab comes to the front."""
        self._all.windows.show(tab_id)
        self._all.fit()
        return Success()

    @expose("crux:window/move-tab", "control")
    async def move_tab(self, tab_id: str, index: int) -> Success:
        """A tab to another place in its window, counted from 0; a larger number makes it the last one."""
        self._all.windows.layout = self._all.windows.layout.move_tab(tab_id, max(0, index))
        return Success()

    @expose("crux:window/rename", "control")
    async def rename(self, id: str, name: str) -> Success:
        """Name a window or a tab."""
        if len(name) > 64 or not name.isprintable():
            raise InvalidInput(
                f"a name must have at most 64 printable characters, got {name[:80]!r}", "choose another name"
            )
        self._all.windows.layout = self._all.windows.layout.rename(id, name)
        return Success()

    @expose("crux:window/set-layout", "control")
    async def set_layout(self, layout: str, pane_id: str = "") -> Success:
        """The tab of the pane as a text of tmux describes it (`bb62,159x48,0,0{…}`)."""
        pane = self._all.find(pane_id)
        _, tab = self._all.windows.place(pane.id)
        tree = read_layout(layout, tab.panes).resize(tab.tree.cols, tab.tree.rows)
        self._put(replace(tab, tree=tree, is_zoomed=False), pane)
        return Success()

    def _put(self, tab: Tab, pane: Pane) -> PaneInfo:
        self._all.windows.put(tab)
        self._all.fit()
        return self._info(pane)

    def _info(self, pane: Pane) -> PaneInfo:
        return describe_pane(self._all, pane)

    def _tab(self, tab: Tab) -> TabOverview:
        root = tab.tree.root
        shown = Leaf(tab.focused, root.cols, root.rows) if tab.is_zoomed else root
        return TabOverview(
            id=tab.id,
            name=tab.name,
            layout=write_layout(root, _number),
            visible_layout=write_layout(shown, _number),
            is_zoomed=tab.is_zoomed,
            panes=list(tab.panes),
            recent=list(tab.recent),
        )

    def _pane(self, pane: Pane) -> PaneOverview:
        engine = pane.engine
        cursor = engine.cursor
        return PaneOverview(
            info=self._info(pane),
            history=engine.history,
            history_limit=engine.history_rows,
            cursor_col=cursor.col,
            cursor_row=cursor.row,
            is_full_screen=engine.is_alternate,
            words=list(pane.argv),
        )


def _number(pane: str) -> int:
    return int(pane) if pane.isdigit() else 0
