"""One person who looks at a window: what was shown already, so that only what changed is sent."""

from __future__ import annotations

import asyncio
import math
from base64 import b64encode
from collections.abc import Callable, Iterable

from dari.terminal.engine.grid import Row
from dari.terminal.layout.cells import Area
from dari.terminal.layout.windows import Window
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged
from dari.terminal.panes import events
from dari.terminal.panes.pane import Pane
from dari.terminal.viewers.copy_mode import CopyMode
from dari.terminal.viewers.frames import (
    Depth,
    FrameCursor,
    FrameModes,
    FramePane,
    FrameRow,
    FrameTab,
    ViewFrame,
    write_row,
)

HELD_S = 0.2
"""How long a program may keep an unfinished picture back (mode 2026)."""


class Viewer:
    def __init__(
        self, multiplexer: Multiplexer, window_id: str, depth: Depth, count_approvals: Callable[[], int] = lambda: 0
    ) -> None:
        self._all = multiplexer
        self._count_approvals = count_approvals
        self.window_id = window_id
        self.depth: Depth = depth
        self.size = self.asked_size = (0, 0)
        self.changed = asyncio.Event()
        self.scrolled: dict[str, int] = {}
        self.copy_modes: dict[str, CopyMode] = {}
        self.drawn_at = 0.0
        self.look_again_at = math.inf
        """When a program that keeps a picture back (mode 2026) has had its time."""
        self._version = 0
        self._sent: dict[str, tuple[Row, ...]] = {}
        self._taken_at: dict[str, float] = {}
        """When each pane's rows were looked at last."""
        self._places: tuple[object, ...] = ()
        self._facts: object = None
        self._has_bell = False
        self._clipboard = b""
        self._stop = multiplexer.changes.subscribe(self._hear)

    def close(self) -> None:
        self._stop()

    @property
    def window(self) -> Window | None:
        return next((window for window in self._all.windows.all if window.id == self.window_id), None)

    @property
    def _windows(self) -> list[str]:
        return [window.id for window in self._all.windows.all]

    @property
    def focused(self) -> Pane | None:
        window = self.window
        return None if window is None else self._all.panes.get(window.tab.focused)

    def pane_at(self, col: int, row: int) -> tuple[Pane, Area] | None:
        """The pane under a cell of the window."""
        window = self.window
        for pane_id, area in (window.tab.areas() if window is not None else {}).items():
            if area.left <= col < area.right and area.top <= row < area.bottom and pane_id in self._all.panes:
                return self._all.panes[pane_id], area
        return None

    def scroll(self, pane: Pane, rows: int) -> None:
        """Look further back by so many rows, or less far."""
        if (copy_mode := self.copy_modes.get(pane.id)) is not None:
            copy_mode.scroll(-rows)
            self.changed.set()
            return
        history = 0 if pane.engine.is_alternate else pane.engine.history
        self.scrolled[pane.id] = max(0, min(history, self.scrolled.get(pane.id, 0) + rows))
        self.changed.set()

    def forget(self) -> None:
        """Send everything again."""
        self._sent.clear()
        self._places = ()

    def frame(self, known: int) -> ViewFrame | None:
        """What the viewer has not seen; None when there is nothing. `known` is the version that it has."""
        window = self.window
        if window is None or not window.tab.areas():
            return ViewFrame(version=self._version, is_over=True)
        if known != self._version:
            self.forget()
        for pane_id, copy_mode in list(self.copy_modes.items()):
            pane = self._all.panes.get(pane_id)
            if pane is None or not copy_mode.is_of(pane.engine):
                del self.copy_modes[pane_id]
                self.scrolled.pop(pane_id, None)
        for pane_id, copy_mode in self.copy_modes.items():
            self.scrolled[pane_id] = copy_mode.scrolled
        places = (window.id, window.cols, window.rows, self.size, window.tab.id, tuple(window.tab.areas().items()))
        is_whole = places != self._places
        if is_whole:
            self._places = places
            self._sent.clear()
        self.look_again_at = math.inf
        changed = [row for pane_id, area in window.tab.areas().items() for row in self._rows(pane_id, area)]
        facts = self._facts_of(window)
        if not (is_whole or changed or self._has_bell or self._clipboard) and facts == self._facts:
            return None
        self._facts = facts
        self._version += 1
        return self._made(window, is_whole, changed)

    def _made(self, window: Window, is_whole: bool, changed: list[FrameRow]) -> ViewFrame:
        pane = self.focused
        areas = window.tab.areas()
        has_bell, self._has_bell = self._has_bell, False
        clipboard, self._clipboard = self._clipboard, b""
        return ViewFrame(
            version=self._version,
            is_whole=is_whole,
            cols=window.cols,
            rows=window.rows,
            panes=[
                FramePane(id=pane_id, left=area.left, top=area.top, cols=area.cols, rows=area.rows, name=name)
                for (pane_id, area), name in zip(areas.items(), self._names(areas), strict=True)
            ],
            focused=window.tab.focused,
            changed=changed,
            cursor=self._cursor(pane, areas.get(window.tab.focused)),
            modes=_modes(pane),
            title=pane.engine.title if pane is not None else "",
            window=window.name,
            window_id=window.id,
            window_number=self._windows.index(window.id) + 1,
            window_count=len(self._windows),
            tabs=[FrameTab(tab.id, tab.name) for tab in window.tabs],
            tab=window.active,
            is_zoomed=window.tab.is_zoomed,
            scrolled=self.scrolled.get(window.tab.focused, 0),
            is_copying=window.tab.focused in self.copy_modes,
            approvals=self._count_approvals(),
            ended=pane.exit_code if pane is not None else None,
            has_bell=has_bell,
            clipboard=b64encode(clipboard).decode(),
        )

    def _rows(self, pane_id: str, area: Area) -> list[FrameRow]:
        pane = self._all.panes.get(pane_id)
        if pane is None:
            return []
        engine = pane.engine
        now = asyncio.get_running_loop().time()
        if engine.modes.synchronized and pane_id in self._sent and now - self._taken_at[pane_id] < HELD_S:
            self.look_again_at = min(self.look_again_at, self._taken_at[pane_id] + HELD_S)
            return []
        self._taken_at[pane_id] = now
        back = min(self.scrolled.get(pane_id, 0), engine.history)
        grid = engine.grid(-back, engine.rows - back)
        rows = grid.rows
        if (copy_mode := self.copy_modes.get(pane_id)) is not None:
            rows = tuple(Row(copy_mode.highlight(number, row.cells), row.wraps) for number, row in enumerate(rows))
        before = self._sent.get(pane_id, ())
        self._sent[pane_id] = rows
        cols = max(0, min(area.cols, self.size[0] - area.left))
        return [
            FrameRow(pane_id, number, write_row(row.cells, cols, self.depth, area.left))
            for number, row in enumerate(rows[: area.rows])
            if number >= len(before) or row.cells != before[number].cells
        ]

    def _cursor(self, pane: Pane | None, area: Area | None) -> FrameCursor | None:
        if pane is not None and area is not None and (copy_mode := self.copy_modes.get(pane.id)) is not None:
            at = copy_mode.cursor
            return FrameCursor(area.left + at.col, area.top + at.row, "block", False)
        if pane is None or area is None or not pane.is_alive:
            return None
        cursor = pane.engine.cursor
        row = cursor.row + self.scrolled.get(pane.id, 0)
        if not cursor.is_visible or row >= area.rows or cursor.col >= area.cols:
            return None
        return FrameCursor(area.left + cursor.col, area.top + row, cursor.shape, cursor.is_blinking)

    def _facts_of(self, window: Window) -> object:
        pane = self.focused
        tab = window.tab
        cursor = self._cursor(pane, tab.areas().get(tab.focused))
        names = tuple((each.id, each.name) for each in window.tabs)
        title = (pane.engine.title, pane.exit_code, self._names(tab.areas())) if pane is not None else ()
        scrolled = (self.scrolled.get(tab.focused, 0), tab.focused in self.copy_modes)
        windows = (window.name, self._windows)
        shown = (tab.focused, cursor, _modes(pane), title, names, window.active, windows, tab.is_zoomed, scrolled)
        return shown, self._count_approvals()

    def _names(self, panes: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._all.panes[pane].name if pane in self._all.panes else "" for pane in panes)

    def _hear(self, change: Change) -> None:
        if isinstance(change, PaneChanged):
            window = self.window
            if window is None or change.pane_id not in window.tab.panes:
                return
            if isinstance(change.event, events.Bell):
                self._has_bell = True
            elif isinstance(change.event, events.ClipboardWritten):
                self._clipboard = change.event.data
        self.changed.set()


def _modes(pane: Pane | None) -> FrameModes:
    if pane is None or not pane.is_alive:
        return FrameModes()
    modes = pane.engine.modes
    return FrameModes(
        application_cursor=modes.application_cursor,
        application_keypad=modes.application_keypad,
        bracketed_paste=modes.bracketed_paste,
        focus=modes.focus,
        mouse=modes.mouse,
        kitty_keyboard=modes.kitty_keyboard,
    )
