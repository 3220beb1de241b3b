"""The terminal as a service: its desks in one place, here or behind the daemon's socket, with the same methods.

panes     open, close, focus, list, resize, zoom, rename, arrange
commands  execute, wait, interrupt; text, keys, raw bytes; wait for output
reading   output, scrollback, state, selection, directory, process, picture
sessions  save, restore, list, remove
server    who serves, and its end
views     what is open, rows, moves of panes, tabs and borders
scripts   what scripts ask of tmux: panes exactly there, notes, signals
tmux      a command line of tmux, run here
attaching windows shown live to people
following commands whose output is read while they run
approvals questions that wait for a person
changes   which panes there are, and which of them changed
special   output understood, clipboard, workspaces, streams, steps across panes, contexts, snapshots

A pane is named by its id or its name; left out, it is the focused one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from dari.daemon.client import DaemonClient
from dari.daemon.methods import Method
from dari.daemon.stub import exposed_methods, make_stub
from dari.terminal.api.approvals import ApprovalsApi
from dari.terminal.api.attach import AttachApi
from dari.terminal.api.clipboard import ClipboardApi
from dari.terminal.api.commands import CommandsApi
from dari.terminal.api.contexts import ContextsApi
from dari.terminal.api.follow import FollowApi
from dari.terminal.api.input_method import InputMethodApi
from dari.terminal.api.output_analysis import OutputAnalysisApi
from dari.terminal.api.panes import ChangesApi, PanesApi
from dari.terminal.api.screen import ScreenApi
from dari.terminal.api.scripts import ScriptsApi
from dari.terminal.api.server import ServerApi
from dari.terminal.api.sessions import SessionsApi, SnapshotsApi
from dari.terminal.api.streams import StreamsApi
from dari.terminal.api.tmux import TmuxApi
from dari.terminal.api.views import ViewsApi
from dari.terminal.api.workflow import WorkflowApi
from dari.terminal.api.workspaces import WorkspacesApi

if TYPE_CHECKING:
    from dari.terminal.multiplexer import Multiplexer


@dataclass(slots=True, frozen=True)
class SpecialDesks:
    insights: OutputAnalysisApi
    ime: InputMethodApi
    clipboard: ClipboardApi
    workspaces: WorkspacesApi
    streams: StreamsApi
    coordination: WorkflowApi
    contexts: ContextsApi
    snapshots: SnapshotsApi

    @property
    def desks(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self))


def local_special(multiplexer: Multiplexer, sessions_path: Path) -> SpecialDesks:
    """Files go beside the sessions: `snapshots/` and, of the user's own making, `workspaces/`."""
    folder = sessions_path.parent
    return SpecialDesks(
        OutputAnalysisApi(multiplexer),
        InputMethodApi(multiplexer),
        ClipboardApi(multiplexer),
        WorkspacesApi(multiplexer, folder / "workspaces"),
        StreamsApi(multiplexer),
        WorkflowApi(multiplexer),
        ContextsApi(multiplexer),
        SnapshotsApi(multiplexer, folder / "snapshots"),
    )


def remote_special(client: DaemonClient) -> SpecialDesks:
    return SpecialDesks(
        make_stub(OutputAnalysisApi, client),
        make_stub(InputMethodApi, client),
        make_stub(ClipboardApi, client),
        make_stub(WorkspacesApi, client),
        make_stub(StreamsApi, client),
        make_stub(WorkflowApi, client),
        make_stub(ContextsApi, client),
        make_stub(SnapshotsApi, client),
    )


@dataclass(slots=True, frozen=True)
class TerminalService:
    panes: PanesApi
    commands: CommandsApi
    reading: ScreenApi
    sessions: SessionsApi
    server: ServerApi
    views: ViewsApi
    scripts: ScriptsApi
    tmux: TmuxApi
    attaching: AttachApi
    following: FollowApi
    approvals: ApprovalsApi
    changes: ChangesApi
    special: SpecialDesks

    @property
    def desks(self) -> tuple[object, ...]:
        own = tuple(getattr(self, each.name) for each in fields(self) if each.name != "special")
        return (*own, *self.special.desks)


def local_service(
    multiplexer: Multiplexer,
    sessions_path: Path,
    shut_down: Callable[[], None] = lambda: None,
    clients: Callable[[], int] = lambda: 0,
) -> TerminalService:
    """The service of panes in this process."""
    from dari.terminal.approvals import Approvals
    from dari.terminal.session_store import SessionStore

    approvals = Approvals(sessions_path.with_name("approvals.jsonl"))
    attaching = AttachApi(multiplexer, lambda: len(approvals.waiting()))
    approvals.on_change = attaching.refresh
    wait_s = multiplexer.security.approval_wait_ms / 1000
    return TerminalService(
        PanesApi(multiplexer),
        CommandsApi(multiplexer),
        ScreenApi(multiplexer),
        SessionsApi(multiplexer, SessionStore(sessions_path)),
        ServerApi(multiplexer, shut_down, clients),
        ViewsApi(multiplexer, attaching.count),
        ScriptsApi(multiplexer),
        TmuxApi(),
        attaching,
        FollowApi(multiplexer),
        ApprovalsApi(approvals, wait_s),
        ChangesApi(multiplexer),
        local_special(multiplexer, sessions_path),
    )


def remote_service(client: DaemonClient) -> TerminalService:
    """The same behind the daemon."""
    return TerminalService(
        make_stub(PanesApi, client),
        make_stub(CommandsApi, client),
        make_stub(ScreenApi, client),
        make_stub(SessionsApi, client),
        make_stub(ServerApi, client),
        make_stub(ViewsApi, client),
        make_stub(ScriptsApi, client),
        make_stub(TmuxApi, client),
        make_stub(AttachApi, client),
        make_stub(FollowApi, client),
        make_stub(ApprovalsApi, client),
        make_stub(ChangesApi, client),
        remote_special(client),
    )


def daemon_methods(service: TerminalService) -> list[Method]:
    """What the daemon serves beside its own `system.*`."""
    methods = [method for desk in service.desks for method in exposed_methods(desk)]
    service.tmux.use(methods)
    return methods
