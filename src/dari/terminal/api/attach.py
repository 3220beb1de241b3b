"""Windows shown live to people: a viewer asks for the next frame, and gets it when something has changed.

A window is as large as the smallest terminal that looks at it. A viewer that stops asking is removed.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Literal

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.api.commands import Success
from dari.terminal.engine.engine import MouseAction, MouseButton
from dari.terminal.engine.keys import Key
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.pane import Pane
from dari.terminal.viewers.copy_mode import CopyMode
from dari.terminal.viewers.frames import Depth, ViewFrame
from dari.terminal.viewers.viewer import Viewer

FRAME_S = 1 / 60
GONE_S = 10.0
MAX_VIEWERS = 32
WHEEL_ROWS = 3
MAX_WAITING_BYTES = 256 * 1024
"""A person's keys may wait for a program that does not read them: nobody waits for that, until it is so much."""

Modifiers = Literal["shift", "alt", "ctrl"]
CopyAction = Literal[
    "enter", "leave", "move", "scroll", "row-start", "row-end", "select", "clear", "search", "search-again", "copy"
]


class CopyModeResult(Struct, frozen=True):
    """`text` is what was copied, `is_found` whether a search found anything, `is_on` whether the mode goes on."""

    is_on: bool
    text: str = ""
    is_found: bool = True


class AttachApi:
    def __init__(self, multiplexer: Multiplexer, count_approvals: Callable[[], int] = lambda: 0) -> None:
        self._all = multiplexer
        self._count_approvals = count_approvals
        self._viewers: dict[str, Viewer] = {}
        self._ends: dict[str, asyncio.TimerHandle] = {}

    def count(self, window_id: str) -> int:
        """How many people look at a window."""
        return sum(viewer.window_id == window_id for viewer in self._viewers.values())

    def refresh(self) -> None:
        """Something outside of the panes has changed that viewers show."""
        for viewer in self._viewers.values():
            viewer.changed.set()

    @expose("crux:attach/frame", "read", ends_with_caller=True)
    async def next_frame(
        self,
        viewer: str,
        cols: int,
        rows: int,
        known: int = 0,
        window_id: str = "",
        pane_id: str = "",
        depth: Depth = "true",
        timeout_s: float = 20.0,
    ) -> ViewFrame:
        """The next frame for a terminal of this size, at the latest after the time (then it may be the same)."""
        found = self._viewer(viewer, window_id, pane_id, depth)
        if (timer := self._ends.pop(viewer, None)) is not None:
            timer.cancel()
        try:
            if found.asked_size != (cols, rows):  # else `resize`, which may have overtaken this, knows better
                found.asked_size = found.size = (cols, rows)
                self._fit(found.window_id)
            return await self._next(found, known, timeout_s)
        except asyncio.CancelledError:
            self._drop(viewer)
            raise
        finally:
            if viewer in self._viewers:
                self._ends[viewer] = asyncio.get_running_loop().call_later(GONE_S, self._drop, viewer)

    @expose("crux:attach/resize", "read")
    async def resize(self, viewer: str, cols: int, rows: int) -> Success:
        """The viewer's terminal has another size; the frame that it waits for comes at once."""
        found = self._known(viewer)
        found.size = (cols, rows)
        self._fit(found.window_id)
        found.changed.set()
        return Success()

    @expose("crux:attach/redraw", "read")
    async def redraw(self, viewer: str) -> Success:
        """The frame that the viewer waits for comes at once, with everything."""
        found = self._known(viewer)
        found.forget()
        found.changed.set()
        return Success()

    @expose("crux:attach/window", "control")
    async def show_window(self, viewer: str, window_id: str = "", step: int = 1) -> Success:
        """Look at another window: the one that is named, else so many further, around the end."""
        found = self._known(viewer)
        ids = [window.id for window in self._all.windows.all]
        if not ids:
            raise NotFound("no window is open", "open a pane with crux_create_pane")
        at = ids.index(found.window_id) if found.window_id in ids else 0
        before, found.window_id = (
            found.window_id,
            (self._all.windows.layout.window(window_id).id if window_id else ids[(at + step) % len(ids)]),
        )
        for each in (before, found.window_id):
            self._fit(each)
        focused = found.focused
        if focused is not None:  # what is typed goes there, and agents that name no pane mean it, too
            self._all.windows.focus(focused.id)
        found.changed.set()
        return Success()

    @expose("crux:attach/leave", "read")
    async def leave(self, viewer: str) -> Success:
        """The window may be as large as the others want it."""
        self._drop(viewer)
        return Success()

    @expose("crux:attach/type", "admin")
    async def type_bytes(self, viewer: str, data: str) -> Success:
        """Bytes (base64) from a person's keyboard to the focused pane. Nothing is judged, so agents may not."""
        found = self._known(viewer)
        pane = found.focused
        if pane is None:
            raise NotFound("no pane is open to type into", "open a pane with crux_create_pane")
        raw = b64decode(data, validate=True)
        found.copy_modes.pop(pane.id, None)
        if found.scrolled.pop(pane.id, 0):
            found.changed.set()
        if pane.is_alive:
            typed = self._all.input_guard(pane)
            note = partial(typed.note, raw.decode(errors="replace"))
            await pane.write(raw, note, max_waiting_bytes=MAX_WAITING_BYTES)
        else:
            await self._all.close(pane.id, force=True)
        return Success()

    @expose("crux:attach/mouse", "admin")
    async def use_mouse(
        self,
        viewer: str,
        action: MouseAction,
        button: MouseButton,
        col: int,
        row: int,
        modifiers: list[Modifiers] | None = None,
    ) -> Success:
        """The mouse at a cell of the window: a click takes the focus; programs that asked for the mouse get it."""
        found = self._known(viewer)
        under = found.pane_at(col, row)
        if under is None:
            return Success()
        pane, area = under
        if action == "press" and button in ("left", "middle", "right") and found.focused is not pane:
            self._all.windows.focus(pane.id)
            self._all.fit()
            found.changed.set()
            return Success()
        report = pane.engine.encode_mouse(
            action, button, col - area.left, row - area.top, frozenset(map(str, modifiers or ()))
        )
        if report and pane.is_alive and not found.scrolled.get(pane.id, 0):
            await pane.write(report, max_waiting_bytes=MAX_WAITING_BYTES)
        elif button in ("wheel_up", "wheel_down") and action == "press":
            await self._wheel(found, pane, button == "wheel_up")
        return Success()

    @expose("crux:attach/scroll", "read")
    async def scroll(self, viewer: str, rows: int) -> Success:
        """Look back in the focused pane by so many rows; negative ones go forward."""
        found = self._known(viewer)
        if found.focused is not None:
            found.scroll(found.focused, rows)
        return Success()

    @expose("crux:attach/copy-mode", "read")
    async def use_copy_mode(
        self,
        viewer: str,
        action: CopyAction,
        rows: int = 0,
        cols: int = 0,
        text: str = "",
        is_upwards: bool = False,
    ) -> CopyModeResult:
        """Look back in the focused pane with a cursor. `copy` returns the selection, and leaves the mode."""
        found = self._known(viewer)
        pane = found.focused
        if pane is None:
            raise NotFound("no pane is open to copy from", "open a pane with crux_create_pane")
        found.changed.set()
        if action == "leave":
            _leave_copy_mode(found, pane)
            return CopyModeResult(False)
        mode = found.copy_modes.get(pane.id)
        if mode is None or not mode.is_of(pane.engine):
            mode = found.copy_modes[pane.id] = CopyMode(pane.engine)
        match action:
            case "move":
                mode.move(rows, cols)
            case "scroll":
                mode.scroll(rows)
            case "row-start":
                mode.go_to_row_start()
            case "row-end":
                mode.go_to_row_end()
            case "select":
                mode.select()
            case "clear":
                if not mode.clear():
                    _leave_copy_mode(found, pane)
            case "search":
                return CopyModeResult(True, is_found=mode.search(text, is_upwards=is_upwards))
            case "search-again":
                return CopyModeResult(True, is_found=mode.search_again(is_reversed=is_upwards))
            case "copy":
                selected = mode.selected_text()
                _leave_copy_mode(found, pane)
                return CopyModeResult(False, selected)
        return CopyModeResult(pane.id in found.copy_modes)

    async def _wheel(self, viewer: Viewer, pane: Pane, is_up: bool) -> None:
        if pane.engine.is_alternate and pane.is_alive:
            # A pager or an editor that knows no mouse is moved by arrow keys, as terminals do.
            keys = pane.engine.encode_key(Key("up" if is_up else "down")) * WHEEL_ROWS
            await pane.write(keys, max_waiting_bytes=MAX_WAITING_BYTES)
        else:
            viewer.scroll(pane, WHEEL_ROWS if is_up else -WHEEL_ROWS)

    async def _next(self, viewer: Viewer, known: int, timeout_s: float) -> ViewFrame:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        pause = viewer.drawn_at + FRAME_S - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        while True:
            viewer.changed.clear()
            self._fit(viewer.window_id)  # the change of layout may have changed the size, too
            frame = viewer.frame(known)
            if frame is None and loop.time() >= deadline:
                return ViewFrame(version=known)
            if frame is not None:
                viewer.drawn_at = loop.time()
                return frame
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(deadline, viewer.look_again_at)):
                    await viewer.changed.wait()

    def _viewer(self, name: str, window_id: str, pane_id: str, depth: Depth) -> Viewer:
        found = self._viewers.get(name)
        if found is None:
            if len(self._viewers) >= MAX_VIEWERS:
                raise Conflict(f"at most {MAX_VIEWERS} people may watch at once", "let one of them leave")
            found = self._viewers[name] = Viewer(
                self._all, self._window(window_id, pane_id), depth, self._count_approvals
            )
        return found

    def _window(self, window_id: str, pane_id: str) -> str:
        if window_id:
            return self._all.windows.layout.window(window_id).id
        return self._all.windows.place(self._all.find(pane_id).id)[0].id

    def _known(self, name: str) -> Viewer:
        if name not in self._viewers:
            raise NotFound(f"no viewer is called {name!r}", "ask for a frame first")
        return self._viewers[name]

    def _drop(self, name: str) -> None:
        viewer = self._viewers.pop(name, None)
        if (timer := self._ends.pop(name, None)) is not None:
            timer.cancel()
        if viewer is not None:
            viewer.close()
            self._fit(viewer.window_id)

    def _fit(self, window_id: str) -> None:
        """The window as large as the smallest terminal that shows it; unchanged when none does."""
        sizes = [viewer.size for viewer in self._viewers.values() if viewer.window_id == window_id]
        window = next((each for each in self._all.windows.all if each.id == window_id), None)
        if not sizes or window is None:
            return
        cols, rows = (min(size[way] for size in sizes) for way in (0, 1))
        if (cols, rows) == (window.cols, window.rows):
            return
        with suppress(Conflict, InvalidInput):  # too small for its panes: it is shown in part
            self._all.windows.resize_window(window_id, cols, rows)
            self._all.fit()


def _leave_copy_mode(viewer: Viewer, pane: Pane) -> None:
    viewer.copy_modes.pop(pane.id, None)
    viewer.scrolled.pop(pane.id, None)
