"""The terminal as a service: its apis in one place, in this process or behind the daemon's socket, same methods.

panes            open, close, focus, list, resize, zoom, rename, arrange
commands         execute, wait, interrupt; text, keys, raw bytes; wait for output
screen           output, scrollback, state, selection, directory, process, picture
sessions         save, restore, list, remove
server           pid, version, socket; shut down
views            what is open, rows, moves of panes, tabs and borders
scripts, tmux    what scripts ask of tmux, and a tmux command line run here
attach           windows shown live to people
watch            panes shown live on pages, and a person who takes one over
follow           a command whose output is read while it runs
approvals        questions that wait for a person
changes          which panes there are, and which of them changed
output_analysis  output as data, as an intent, as a difference
…                the other tools of design 002 §3.2: input method, clipboard, workspaces, streams, workflow, contexts,
                 snapshots

A pane is named by its id or its name; an empty name means the focused pane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

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
from dari.terminal.api.scripts import ScriptsApi, TmuxApi
from dari.terminal.api.server import ServerApi
from dari.terminal.api.sessions import SessionsApi, SnapshotsApi
from dari.terminal.api.streams import StreamsApi
from dari.terminal.api.views import ViewsApi
from dari.terminal.api.watch import WatchApi
from dari.terminal.api.workflow import WorkflowApi
from dari.terminal.api.workspaces import WorkspacesApi

if TYPE_CHECKING:
    from dari.core.approval_service import ApprovalService
    from dari.terminal.multiplexer import Multiplexer


@dataclass(slots=True, frozen=True)
class TerminalService:
    """Adding an api is one line here and one in `local_service`."""

    panes: PanesApi
    commands: CommandsApi
    screen: ScreenApi
    sessions: SessionsApi
    server: ServerApi
    views: ViewsApi
    scripts: ScriptsApi
    tmux: TmuxApi
    attach: AttachApi
    watch: WatchApi
    follow: FollowApi
    approvals: ApprovalsApi
    changes: ChangesApi
    output_analysis: OutputAnalysisApi
    input_method: InputMethodApi
    clipboard: ClipboardApi
    workspaces: WorkspacesApi
    streams: StreamsApi
    workflow: WorkflowApi
    contexts: ContextsApi
    snapshots: SnapshotsApi

    @property
    def apis(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self))


def local_service(
    multiplexer: Multiplexer,
    sessions_path: Path,
    shut_down: Callable[[], None] = lambda: None,
    clients: Callable[[], int] = lambda: 0,
    hub: ApprovalService | None = None,
) -> TerminalService:
    """The service of panes in this process. Snapshots and the user's own workspaces lie beside the sessions.

    `hub` has the queue of approvals; None: the hub of this user.
    """
    from dari.core.hub_client import hub_approvals
    from dari.terminal.session_store import SessionStore

    folder = sessions_path.parent
    security = multiplexer.security
    approvals = ApprovalsApi(
        hub or hub_approvals(), security.approval_wait_ms / 1000, form_clients=security.elicitation_clients
    )
    attach = AttachApi(multiplexer, lambda: approvals.count)
    approvals.on_change = attach.refresh
    multiplexer.approvals = approvals
    return TerminalService(
        panes=PanesApi(multiplexer),
        commands=CommandsApi(multiplexer),
        screen=ScreenApi(multiplexer),
        sessions=SessionsApi(multiplexer, SessionStore(sessions_path)),
        server=ServerApi(multiplexer, shut_down, clients),
        views=ViewsApi(multiplexer, attach.count),
        scripts=ScriptsApi(multiplexer),
        tmux=TmuxApi(),
        attach=attach,
        watch=WatchApi(multiplexer),
        follow=FollowApi(multiplexer),
        approvals=approvals,
        changes=ChangesApi(multiplexer),
        output_analysis=OutputAnalysisApi(multiplexer),
        input_method=InputMethodApi(multiplexer),
        clipboard=ClipboardApi(multiplexer),
        workspaces=WorkspacesApi(multiplexer, folder / "workspaces"),
        streams=StreamsApi(multiplexer),
        workflow=WorkflowApi(multiplexer),
        contexts=ContextsApi(multiplexer),
        snapshots=SnapshotsApi(multiplexer, folder / "snapshots"),
    )


def remote_service(client: DaemonClient) -> TerminalService:
    """The same service behind the daemon."""
    apis = get_type_hints(TerminalService)
    return TerminalService(**{each.name: make_stub(apis[each.name], client) for each in fields(TerminalService)})


def daemon_methods(service: TerminalService) -> list[Method]:
    """What the daemon serves beside its own `system.*`."""
    methods = [method for api in service.apis for method in exposed_methods(api)]
    service.tmux.use(methods)
    return methods
