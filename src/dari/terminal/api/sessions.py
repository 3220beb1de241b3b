"""Sessions: all panes with layout, directories, environment, scrollback and commands, saved and restored."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, DariError, InvalidInput, NeedsApproval
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.commands import Success
from dari.terminal.engine.engine import Engine, restore_engine
from dari.terminal.layout.tree import Tree
from dari.terminal.layout.windows import Window
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.out_of_band import is_variable
from dari.terminal.panes.execution import PROMPT_S
from dari.terminal.panes.pane import Pane
from dari.terminal.panes.shell_integration import kind_of
from dari.terminal.session_store import (
    SavedPane,
    SavedSession,
    SavedTab,
    SavedWindow,
    SessionStore,
    panes_in,
    to_cell,
    to_saved,
)
from dari.terminal.window_manager import PanePlacement

LEAVE = b"\x1b[?1049l"
PLAIN_KEYS = b"\x1b[<99u\x1b[=0;1u\x1b[>4m\x1b[?1l\x1b>"
CALM = (
    PLAIN_KEYS + b"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    b"\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?2048l\x1b[4l\x1b[20l\x1b[?5l\x1b[?6l\x1b[?7h\x1b[?69l\x1b[r"
    b'\x1b(B\x1b)B\x0f\x1b[0m\x1b[0"q\x1b[0 q\x1b[?25h'
)
"""Ends the modes of the program that is gone."""
DEFAULT_NAME = re.compile(r"[wt]\d+")
"""Of a window or a tab that nobody named: its id."""
NOTE = b"\x1b[2m[restored]\x1b[0m\r\n"


class SaveResult(Struct, frozen=True):
    session_id: str
    panes: int = 0
    size_bytes: int = 0


class RestoreResult(Struct, frozen=True):
    success: bool
    panes: list[str] = []
    """Ids of the panes, in the order of the session."""


class SessionInfo(Struct, frozen=True):
    session_id: str
    name: str
    saved_unix: float
    panes: int
    size_bytes: int


class SessionList(Struct, frozen=True):
    sessions: list[SessionInfo]


class SnapshotInfo(Struct, frozen=True, kw_only=True):
    snapshot_id: str
    panes: int
    size_bytes: int
    taken_unix: float = 0.0


class SnapshotList(Struct, frozen=True):
    snapshots: list[SnapshotInfo]


class SessionsApi:
    def __init__(self, multiplexer: Multiplexer, store: SessionStore) -> None:
        self._all = multiplexer
        self._store = store

    @expose("crux:session/save", "control", is_slow=True)
    async def save_session(self, name: str = "", scrollback: bool = True) -> SaveResult:
        """Write every live pane and the layout to a file; without a name one is made."""
        panes = [pane for pane in self._all.panes.values() if pane.is_alive]
        if not panes:
            raise Conflict("no pane is open to save", "open one with crux_create_pane")
        # Shells are asked for their variables below: panes that open or close meanwhile are no part of it.
        layout = self._all.settled_layout
        windows = tuple(self._window(window) for window in layout.windows)
        saved = await asyncio.gather(*(self._pane(pane, scrollback) for pane in self._all.panes.values()))
        session = SavedSession(
            name=name, saved_unix=time.time(), windows=windows, panes=tuple(saved), focused=layout.focused or ""
        )
        session_id, size_bytes = await asyncio.to_thread(self._store.save, session)
        return SaveResult(session_id, len(session.panes), size_bytes)

    @expose("crux:session/restore", "control", is_slow=True)
    @approvable
    async def restore_session(self, session_id: str, commands: bool = False, instead: bool = False) -> RestoreResult:
        """Open the session's panes in windows of their own; `commands` runs again what was running.

        `instead` ends the panes that are open now, once the session was read and found whole.
        """
        session = await asyncio.to_thread(self._store.load, session_id)
        await self._all.warm()
        self._check(session, commands, instead, approved_message())
        if instead:
            self._all.check_end(self._all.panes.values())
            await self._all.end_all()
        names: dict[str, str] = {}
        try:
            for window in session.windows:
                await self._restore_window(window, session, names)
        except BaseException:
            for pane_id in names.values():
                await self._all.close(pane_id, force=True)
            raise
        if session.focused in names and not self._all.windows.is_zoomed(names[session.focused]):
            self._all.windows.focus(names[session.focused])
        self._all.fit()
        if commands:
            await asyncio.gather(*(self._run_again(saved, names) for saved in session.panes if saved.command))
        return RestoreResult(True, [names[saved.id] for saved in session.panes if saved.id in names])

    @expose("crux:session/list", "read")
    async def list_sessions(self) -> SessionList:
        """Newest first."""
        return await asyncio.to_thread(self._listed)

    @expose("crux:session/remove", "control")
    async def remove_session(self, session_id: str) -> Success:
        await asyncio.to_thread(self._store.remove, session_id)
        return Success()

    def _listed(self) -> SessionList:
        found: list[SessionInfo] = []
        for session_id, path in self._store.files():
            try:
                session = self._store.load(session_id)
                size_bytes = path.stat().st_size
            except (DariError, OSError):
                continue  # removed meanwhile, or no session: `restore` tells why
            found.append(SessionInfo(session_id, session.name, session.saved_unix, len(session.panes), size_bytes))
        return SessionList(sorted(found, key=lambda info: -info.saved_unix))

    # Saving

    def _window(self, window: Window) -> SavedWindow:
        tabs = tuple(SavedTab(to_saved(tab.tree.root), tab.recent, tab.name, tab.is_zoomed) for tab in window.tabs)
        active = next((at for at, tab in enumerate(window.tabs) if tab.id == window.active), 0)
        return SavedWindow(window.cols, window.rows, tabs, active, window.name)

    async def _pane(self, pane: Pane, scrollback: bool) -> SavedPane:
        screen = pane.engine.snapshot() if scrollback else b""
        environment = await self._all.environment(pane)
        current = pane.commands.current
        # A shell far away is spoken to as well; what leads there is a program of its own, such as ssh.
        is_shell = pane.kind is not None and kind_of(pane.argv[0]) is not None
        return SavedPane(
            id=pane.id,
            name=pane.name,
            cwd=pane.cwd(),
            argv=() if is_shell or not pane.is_alive else pane.argv,
            shell=pane.argv[0] if is_shell else "",
            env=environment,
            command=current.command if current is not None else "",
            screen=screen,
        )

    # Restoring

    def _check(self, session: SavedSession, commands: bool, instead: bool, approved: str) -> None:
        """Everything that can be refused is refused before anything is changed."""
        held = {saved.id for saved in session.panes}
        placed = [pane for window in session.windows for tab in window.tabs for pane in panes_in(tab.root)]
        if sorted(placed) != sorted(held):
            raise InvalidInput("the session's layout and its panes do not agree", "save it anew")
        open_now = 0 if instead else self._all.live_panes
        if open_now + len(held) > self._all.security.max_panes:
            raise Conflict(
                f"{open_now} panes are open and the session has {len(held)}, more than max_panes",
                "close some, restore with replace=true, or raise max_panes in crux.toml",
            )
        guard = self._all.guard
        needs: list[NeedsApproval] = []
        for saved in session.panes:
            place = saved.cwd or os.path.expanduser("~")
            opening = partial(guard.check_opening, shlex.join(saved.argv), env=_variables(saved), shell=saved.shell)
            for check in (opening, partial(guard.check, saved.command if commands else "")):
                try:
                    check(place)
                except NeedsApproval as need:
                    needs.append(need)
        message = "\n".join(dict.fromkeys(need.message for need in needs))
        if needs and approved != message:
            raise NeedsApproval(message, next((need.hint for need in needs if need.hint), ""))

    async def _restore_window(self, window: SavedWindow, session: SavedSession, names: dict[str, str]) -> None:
        windows = self._all.windows
        saved_panes = {saved.id: saved for saved in session.panes}
        spot = PanePlacement(where="window")
        tab_ids: list[str] = []
        for tab in window.tabs:
            ids = panes_in(tab.root)
            first = await self._open(saved_panes[ids[0]], spot)
            names[ids[0]] = first.id
            place, _ = windows.place(first.id)
            if not tab_ids:
                if not DEFAULT_NAME.fullmatch(window.name) and all(each.name != window.name for each in windows.all):
                    windows.layout = windows.layout.rename(place.id, window.name)
                windows.resize_window(place.id, window.cols, window.rows)
                spot = PanePlacement(first.id, where="tab")
            for pane_id in ids[1:]:
                # Anywhere in the tab: the tree is put in place as a whole below.
                anywhere = PanePlacement(first.id, "vertical", is_full=True, size=1, is_strict=True)
                names[pane_id] = (await self._open(saved_panes[pane_id], anywhere)).id
            _, opened = windows.place(first.id)
            recent = tuple(names[pane] for pane in tab.recent if pane in names)
            tree = Tree(to_cell(tab.root, names), window.cols, window.rows)
            name = opened.name if DEFAULT_NAME.fullmatch(tab.name) else tab.name
            windows.put(replace(opened, tree=tree, recent=recent, name=name, is_zoomed=tab.is_zoomed))
            tab_ids.append(opened.id)
        windows.show(tab_ids[min(window.active, len(tab_ids) - 1)])

    async def _open(self, saved: SavedPane, spot: PanePlacement) -> Pane:
        cwd = saved.cwd if os.path.isdir(saved.cwd) else os.path.expanduser("~")
        engine: Engine | None = None
        if saved.screen:
            engine = restore_engine(saved.screen)
            _calm(engine)
        return await self._all.open(
            spot=spot,
            cwd=cwd,
            command=saved.argv,
            shell=saved.shell,
            name=saved.name,
            env=_variables(saved),
            engine=engine,
            pane_id="" if saved.id in self._all.panes else saved.id,
        )

    async def _run_again(self, saved: SavedPane, names: dict[str, str]) -> None:
        pane = self._all.find(names[saved.id])
        if pane.kind is not None and await pane.commands.ready(PROMPT_S):
            await pane.execute(saved.command, 0.0)


def _variables(saved: SavedPane) -> dict[str, str]:
    """Those that a pane may be opened with; older files hold functions of bash, too."""
    return {name: value for name, value in saved.env.items() if is_variable(name)}


def _calm(engine: Engine) -> None:
    """The program that drew the screen is gone: end its modes, and let the new one begin below what is there."""
    engine.feed(PLAIN_KEYS + LEAVE + CALM if engine.modes.alternate else CALM)
    rows = engine.text(0, engine.rows).split("\n")
    used = max((number for number, row in enumerate(rows, 1) if row.strip()), default=0)
    engine.feed((b"\x1b[%d;1H\r\n" % used if used else b"\x1b[H") + NOTE)


MAX_UNNAMED = 20


class SnapshotsApi:
    """Kept apart from sessions. Those without a name are bounded: the oldest one goes when there are too many."""

    def __init__(self, multiplexer: Multiplexer, folder: Path) -> None:
        self._store = SessionStore(folder, "snapshot")
        self._sessions = SessionsApi(multiplexer, self._store)

    @expose("crux:snapshot/create", "control", is_slow=True)
    async def create(self, name: str = "") -> SnapshotInfo:
        """Write all panes to a file; one of the same name is replaced."""
        saved = await self._sessions.save_session(name, True)
        kept = (await self._sessions.list_sessions()).sessions
        for old in [info for info in kept if not info.name][MAX_UNNAMED:]:
            await asyncio.to_thread(self._store.remove, old.session_id)
        return SnapshotInfo(
            snapshot_id=saved.session_id,
            panes=saved.panes,
            size_bytes=saved.size_bytes,
            taken_unix=next((info.saved_unix for info in kept if info.session_id == saved.session_id), 0.0),
        )

    @expose("crux:snapshot/restore", "control", is_slow=True)
    async def restore(self, snapshot_id: str, commands: bool = False, instead: bool = False) -> RestoreResult:
        """Open its panes in windows of their own; `commands` runs what was running, `instead` ends what is open."""
        return await self._sessions.restore_session(snapshot_id, commands, instead)

    @expose("crux:snapshot/list", "read")
    async def list_snapshots(self) -> SnapshotList:
        """Newest first."""
        found = (await self._sessions.list_sessions()).sessions
        return SnapshotList(
            [
                SnapshotInfo(
                    snapshot_id=info.session_id,
                    panes=info.panes,
                    size_bytes=info.size_bytes,
                    taken_unix=info.saved_unix,
                )
                for info in found
            ]
        )

    @expose("crux:snapshot/remove", "control")
    async def remove(self, snapshot_id: str) -> Success:
        await asyncio.to_thread(self._store.remove, snapshot_id)
        return Success()
