"""Workspaces: named panes in a layout with their commands, opened in a window of their own."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import Conflict, DariError, InvalidInput
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.commands import start_command
from dari.terminal.input_policy import PendingText, check_all
from dari.terminal.layout.workspace import Workspace, load_workspace, presets
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes.pane import Pane
from dari.terminal.window_manager import PanePlacement


class WorkspacePane(Struct, frozen=True):
    id: str
    name: str
    command: str = ""


class LoadedWorkspace(Struct, frozen=True, kw_only=True):
    success: bool
    workspace: str
    description: str
    window_id: str
    panes: list[WorkspacePane]
    focused: str


class WorkspaceInfo(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    panes: list[str]
    source: Literal["built-in", "user"]


class WorkspaceList(Struct, frozen=True):
    workspaces: list[WorkspaceInfo]


class WorkspacesApi:
    """`folder` holds the user's own files beside `~/.config/crux/workspaces`."""

    def __init__(self, multiplexer: Multiplexer, folder: Path) -> None:
        self._all = multiplexer
        config = os.environ.get("XDG_CONFIG_HOME", "")
        base = Path(config) if os.path.isabs(config) else Path.home() / ".config"
        self._folders = (folder, base / "crux" / "workspaces")

    @expose("crux:workspace/list", "read")
    async def list_workspaces(self) -> WorkspaceList:
        """The user's own, then the built-in ones that they do not replace."""
        return await asyncio.to_thread(self._listed)

    @expose("crux:workspace/load", "control", is_slow=True)
    @approvable
    async def load_workspace(
        self,
        name: str,
        cwd: str = "",
        run: bool = True,
        replace: bool = False,
        commands: dict[str, str] | None = None,
    ) -> LoadedWorkspace:
        """Open the panes of a workspace (a name, or a path to a file) in a new window, and run their commands.

        `commands` sets or replaces what panes run, by their names. Panes of the same names that are open already are a
        Conflict, unless `replace`, which closes them. What can be refused is refused before anything is changed.
        """
        workspace = await asyncio.to_thread(load_workspace, name, self._folders)
        given = commands or {}
        unknown = sorted(set(given) - set(workspace.names))
        if unknown:
            raise InvalidInput(f"{name} has no pane {unknown[0]!r}", "panes: " + ", ".join(workspace.names))
        to_run = {
            pane: command for pane in workspace.names if (command := given.get(pane, workspace.spec(pane).command))
        }
        places = {pane: self._place(workspace, pane, cwd) for pane in workspace.names}
        old = [pane for pane in self._all.panes.values() if pane.is_alive and pane.name in workspace.names]
        self._check(workspace, old, replace)
        agreed = check_all(
            self._all.guard,
            [
                PendingText(text, places[pane])
                for pane in workspace.names
                for text in (_settings(workspace.spec(pane).env), to_run.get(pane, "") if run else "")
            ],
            approved_message(),
        )
        if replace:
            self._all.check_end(old)
            await asyncio.gather(*(self._all.close(pane.id, force=True) for pane in old))
        opened = await self._open(workspace, places)
        if run:
            await asyncio.gather(*(self._run(opened[pane], text, agreed) for pane, text in to_run.items()))
        self._all.windows.focus(opened[workspace.focused].id)
        self._all.fit()
        return LoadedWorkspace(
            success=True,
            workspace=workspace.name,
            description=workspace.description,
            window_id=self._all.windows.place(opened[workspace.focused].id)[0].id,
            panes=[
                WorkspacePane(opened[pane].id, pane, to_run.get(pane, "") if run else "") for pane in workspace.names
            ],
            focused=opened[workspace.focused].id,
        )

    def _listed(self) -> WorkspaceList:
        found: dict[str, WorkspaceInfo] = {}
        for folder in self._folders:
            for path in sorted([*folder.glob("*.toml"), *folder.glob("*.json")]):
                try:
                    own = load_workspace(str(path))
                except DariError:
                    continue  # `load` tells why
                info = WorkspaceInfo(name=path.stem, description=own.description, panes=list(own.names), source="user")
                found.setdefault(path.stem, info)
        for name, each in presets().items():
            info = WorkspaceInfo(name=name, description=each.description, panes=list(each.names), source="built-in")
            found.setdefault(name, info)
        return WorkspaceList(list(found.values()))

    def _place(self, workspace: Workspace, pane: str, cwd: str) -> str:
        """Where a pane begins: its own directory, below that of the workspace, below the one that was asked for."""
        focused = self._all.focused
        start = cwd or (self._all.find(focused).cwd() if focused and not workspace.cwd else self._all.start_place)
        path = os.path.expanduser(start)
        for part in (workspace.cwd, workspace.spec(pane).cwd):
            path = os.path.join(path, os.path.expanduser(part)) if part else path
        path = os.path.abspath(path)
        if not os.path.isdir(path):
            raise InvalidInput(
                f"pane {pane}: cwd must be a directory, got {path}", "give cwd, or correct the workspace"
            )
        return path

    def _check(self, workspace: Workspace, old: list[Pane], replace: bool) -> None:
        if old and not replace:
            names = ", ".join(f"{pane.name} ({pane.id})" for pane in old)
            raise Conflict(f"panes of these names are open: {names}", "close them, or load with replace=true")
        open_now = self._all.live_panes - len(old)
        if open_now + len(workspace.names) > self._all.security.max_panes:
            raise Conflict(
                f"{open_now} panes are open and the workspace has {len(workspace.names)}, more than max_panes",
                "close some with crux_close_pane, or raise max_panes in crux.toml",
            )

    async def _open(self, workspace: Workspace, places: Mapping[str, str]) -> dict[str, Pane]:
        opened: dict[str, Pane] = {}
        try:
            for name in workspace.names:
                first = next(iter(opened.values()), None)
                # Anywhere in the tab: the tree is put in place as a whole below.
                spot = (
                    PanePlacement(where="window", title=workspace.name)
                    if first is None
                    else PanePlacement(first.id, "vertical", is_full=True, size=1, is_strict=True)
                )
                env = workspace.spec(name).env
                opened[name] = await self._all.open(spot=spot, cwd=places[name], name=name, env=env)
            first = opened[workspace.names[0]]
            window, tab = self._all.windows.place(first.id)
            tree = workspace.tree(window.cols, window.rows, {name: pane.id for name, pane in opened.items()})
            self._all.windows.put(replace_fields(tab, tree=tree, is_zoomed=False))
        except BaseException:
            await asyncio.gather(*(self._all.close(pane.id, force=True) for pane in opened.values()))
            raise
        self._all.fit()
        for name, pane in opened.items():
            if title := workspace.spec(name).title:
                pane.engine.feed(b"\x1b]0;" + "".join(filter(str.isprintable, title)).encode() + b"\a")
        return opened

    async def _run(self, pane: Pane, command: str, agreed: Mapping[str, str]) -> None:
        await start_command(self._all, pane, command, agreed.get(command, ""))


def _settings(env: Mapping[str, str]) -> str:
    """Variables as a shell sets them: some of them make programs run something."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
