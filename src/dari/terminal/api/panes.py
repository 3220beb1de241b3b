"""Panes: open, close, focus, list, resize, zoom, rename, arrange. The methods of design 002 §6.3 keep their names."""

from __future__ import annotations

import asyncio
import os
import shlex

from msgspec import Struct, structs

from dari.daemon.stub import expose
from dari.errors import InvalidInput
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.commands import Success, WaitResult, wait_for_text
from dari.terminal.layout.cells import Orientation
from dari.terminal.layout.presets import find_preset
from dari.terminal.limits import DEFAULT_WAIT_S
from dari.terminal.multiplexer import Change, Multiplexer, PaneChanged, PaneGone
from dari.terminal.panes.execution import PROMPT_S
from dari.terminal.panes.expect import make_matcher
from dari.terminal.panes.pane import Pane
from dari.terminal.window_manager import PanePlacement, Where


class PaneInfo(Struct, frozen=True, kw_only=True):
    id: str
    pid: int
    cwd: str
    name: str = ""
    title: str = ""
    tty: str = ""
    cols: int
    rows: int
    left: int = 0
    top: int = 0
    window_id: str = ""
    tab_id: str = ""
    is_focused: bool = False
    is_zoomed: bool = False
    is_alive: bool = True
    exit_code: int | None = None
    shell: str = ""
    """bash, zsh, fish or sh; empty for any other program, in which commands cannot be executed."""
    process: str = ""
    is_at_prompt: bool = False
    mark: int = 0
    """The place in the output now, or for a new pane where it begins: for `since` of crux_wait_for_output."""


class PaneList(Struct, frozen=True):
    panes: list[PaneInfo]
    focused: str = ""


class ResizeResult(Struct, frozen=True):
    success: bool
    cols: int
    rows: int


class CreatedPane(PaneInfo, frozen=True, kw_only=True):
    """`waited` is what crux_wait_for_output would say, when there was something to wait for."""

    waited: WaitResult | None = None


class PanesApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer

    @expose("crux:pane/split", "control", is_slow=True)
    @approvable
    async def spawn_pane(
        self,
        direction: Orientation = "horizontal",
        cwd: str = "",
        command: str = "",
        argv: list[str] | None = None,
        name: str = "",
        shell: str = "",
        env: dict[str, str] | None = None,
        target: str = "",
        where: Where = "split",
        size: int = 0,
        is_before: bool = False,
        focus: bool = True,
        wait_for: str = "",
        is_regex: bool = True,
        timeout_s: float = DEFAULT_WAIT_S,
    ) -> CreatedPane:
        """Open a pane beside `target`; `command` is typed into its shell, `argv` is run instead of a shell.

        With `wait_for`, return once what runs in it has printed that, or after the time.
        """
        if wait_for:
            make_matcher(wait_for, is_regex)  # nothing is opened for a pattern that cannot be waited for
        if command and argv:
            raise InvalidInput("both command and argv were given", "give one of them")
        place = cwd or (self._all.find(target).cwd() if target or self._all.focused else self._all.start_place)
        text = command or shlex.join(argv or ())
        self._all.guard.check_opening(text, _absolute(place), env=env, shell=shell, approved=approved_message())
        spot = PanePlacement(target, direction, where, size or None, is_before, focus=focus)
        pane = await self._all.open(spot=spot, cwd=cwd, command=argv or (), shell=shell, name=name, env=env)
        mark = 0
        if command:
            await pane.commands.ready(PROMPT_S)
            mark = (await pane.execute(command, 0.0)).mark
        waited = await wait_for_text(pane, wait_for, is_regex, timeout_s, mark) if wait_for else None
        return CreatedPane(**{**structs.asdict(self._info(pane)), "mark": mark}, waited=waited)

    @expose("crux:pane/close", "control", is_slow=True)
    async def close_pane(self, pane_id: str = "", force: bool = True) -> Success:
        """End the pane and all that runs in it; without `force` a busy pane is a Conflict."""
        await self._all.close(pane_id, force=force)
        return Success()

    @expose("crux:pane/focus", "control")
    async def focus_pane(self, pane_id: str) -> Success:
        self._all.windows.focus(self._all.find(pane_id).id)
        self._all.fit()
        return Success()

    @expose("crux:pane/list", "read")
    async def list_panes(self) -> PaneList:
        return PaneList([self._info(pane) for pane in self._all.panes.values()], self._all.focused)

    @expose("crux:pane/resize", "control")
    async def resize_pane(self, pane_id: str = "", cols: int = 0, rows: int = 0) -> ResizeResult:
        """Zero keeps a size; neighbours give or take the cells, a window without any changes its own size."""
        if cols < 0 or rows < 0 or not (cols or rows) or cols > 2000 or rows > 2000:
            raise InvalidInput(f"a pane must have 1…2000 columns and rows, got {cols}×{rows}", "choose another size")
        pane = self._all.find(pane_id)
        self._all.windows.resize(pane.id, cols or None, rows or None)
        self._all.fit()
        now = pane.engine.cols, pane.engine.rows
        return ResizeResult(now == (cols or now[0], rows or now[1]), *now)

    @expose("crux:pane/zoom", "control")
    async def zoom_pane(self, pane_id: str = "", is_zoomed: bool | None = None) -> PaneInfo:
        pane = self._all.find(pane_id)
        self._all.windows.zoom(pane.id, is_zoomed)
        self._all.fit()
        return self._info(pane)

    @expose("crux:pane/rename", "control")
    async def rename_pane(self, name: str, pane_id: str = "") -> PaneInfo:
        return self._info(self._all.rename(pane_id, name))

    @expose("crux:pane/arrange", "control")
    async def select_layout(self, preset: str, pane_id: str = "", main_size: str = "") -> PaneList:
        """Arrange the panes of the tab: even-horizontal, even-vertical, main-horizontal, main-vertical, tiled."""
        self._all.windows.arrange(self._all.find(pane_id).id, find_preset(preset), main_size or None)
        self._all.fit()
        return await self.list_panes()

    @expose("crux:pane/info", "read")
    async def pane_info(self, pane_id: str = "") -> PaneInfo:
        return self._info(self._all.find(pane_id))

    @expose("crux:window/resize", "control")
    async def resize_window(self, window_id: str, cols: int, rows: int) -> Success:
        """The size of the terminal that shows it."""
        self._all.windows.resize_window(window_id, cols, rows)
        self._all.fit()
        return Success()

    def _info(self, pane: Pane) -> PaneInfo:
        return describe_pane(self._all, pane)


def describe_pane(multiplexer: Multiplexer, pane: Pane) -> PaneInfo:
    windows = multiplexer.windows
    window, tab = windows.place(pane.id)
    area = windows.area(pane.id)
    process = pane.foreground()
    return PaneInfo(
        id=pane.id,
        pid=pane.pid,
        cwd=pane.cwd(),
        name=pane.name,
        title=pane.engine.title,
        tty=pane.tty,
        cols=pane.engine.cols,
        rows=pane.engine.rows,
        left=area.left,
        top=area.top,
        window_id=window.id,
        tab_id=tab.id,
        is_focused=windows.focused == pane.id,
        is_zoomed=windows.is_zoomed(pane.id),
        is_alive=pane.is_alive,
        exit_code=pane.exit_code,
        shell=pane.kind or "",
        process=process.name if process is not None else "",
        is_at_prompt=pane.is_at_prompt,
        mark=pane.position,
    )


def _absolute(place: str) -> str:
    return os.path.abspath(os.path.expanduser(place))


CHANGES_GATHER_S = 0.1
"""Output comes in many pieces; followers hear of them together, also one who is behind when it asks."""


class PaneChanges(Struct, frozen=True):
    """`version` is for the next call, `changed` are panes that showed or did something since the last one."""

    version: int
    panes: list[str]
    changed: list[str]


class ChangesApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._version = 1
        self._changed: dict[str, int] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        multiplexer.changes.subscribe(self._hear)

    @expose("crux:pane/changes", "read", ends_with_caller=True)
    async def changes(self, seen: int = 0, timeout_s: float = DEFAULT_WAIT_S) -> PaneChanges:
        """What happened after the version `seen`, once something has; the same version after the time. 0: at once."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                if seen == self._version:
                    await waiter
                if seen:
                    await asyncio.sleep(CHANGES_GATHER_S)
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(waiter)
        changed = [pane_id for pane_id, version in self._changed.items() if version > seen]
        return PaneChanges(self._version, list(self._all.panes), changed)

    def _hear(self, change: Change) -> None:
        self._version += 1
        if isinstance(change, PaneGone):
            self._changed.pop(change.pane_id, None)
        elif isinstance(change, PaneChanged):
            self._changed[change.pane_id] = self._version
        if self._waiting:
            for waiter in self._waiting:
                if not waiter.done():
                    waiter.set_result(None)
