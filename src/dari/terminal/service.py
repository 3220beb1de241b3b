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
from dari.terminal.attaching.attach import AttachDesk
from dari.terminal.attaching.desk import ViewDesk
from dari.terminal.attaching.following import FollowDesk
from dari.terminal.attaching.scripts import ScriptDesk
from dari.terminal.attaching.tmux import TmuxDesk
from dari.terminal.desks.approvals import ApprovalDesk
from dari.terminal.desks.changes import ChangesDesk
from dari.terminal.desks.commands import CommandDesk
from dari.terminal.desks.panes import PaneDesk
from dari.terminal.desks.reading import ReadingDesk
from dari.terminal.desks.server import ServerDesk
from dari.terminal.desks.sessions import SessionDesk
from dari.terminal.desks.special import SpecialDesks, local_special, remote_special

if TYPE_CHECKING:
    from dari.terminal.multiplexer import Multiplexer


@dataclass(slots=True, frozen=True)
class TerminalService:
    panes: PaneDesk
    commands: CommandDesk
    reading: ReadingDesk
    sessions: SessionDesk
    server: ServerDesk
    views: ViewDesk
    scripts: ScriptDesk
    tmux: TmuxDesk
    attaching: AttachDesk
    following: FollowDesk
    approvals: ApprovalDesk
    changes: ChangesDesk
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
    from dari.terminal.sessions.store import SessionStore

    approvals = Approvals(sessions_path.with_name("approvals.jsonl"))
    attaching = AttachDesk(multiplexer, lambda: len(approvals.waiting()))
    approvals.on_change = attaching.refresh
    wait_s = multiplexer.security.approval_wait_ms / 1000
    return TerminalService(
        PaneDesk(multiplexer),
        CommandDesk(multiplexer),
        ReadingDesk(multiplexer),
        SessionDesk(multiplexer, SessionStore(sessions_path)),
        ServerDesk(multiplexer, shut_down, clients),
        ViewDesk(multiplexer, attaching.count),
        ScriptDesk(multiplexer),
        TmuxDesk(),
        attaching,
        FollowDesk(multiplexer),
        ApprovalDesk(approvals, wait_s),
        ChangesDesk(multiplexer),
        local_special(multiplexer, sessions_path),
    )


def remote_service(client: DaemonClient) -> TerminalService:
    """The same behind the daemon."""
    return TerminalService(
        make_stub(PaneDesk, client),
        make_stub(CommandDesk, client),
        make_stub(ReadingDesk, client),
        make_stub(SessionDesk, client),
        make_stub(ServerDesk, client),
        make_stub(ViewDesk, client),
        make_stub(ScriptDesk, client),
        make_stub(TmuxDesk, client),
        make_stub(AttachDesk, client),
        make_stub(FollowDesk, client),
        make_stub(ApprovalDesk, client),
        make_stub(ChangesDesk, client),
        remote_special(client),
    )


def daemon_methods(service: TerminalService) -> list[Method]:
    """What the daemon serves beside its own `system.*`."""
    methods = [method for desk in service.desks for method in exposed_methods(desk)]
    service.tmux.use(methods)
    return methods
