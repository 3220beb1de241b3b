"""The desks of the special tools of design 002 §3.2, here or behind the daemon."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from dari.daemon.client import DaemonClient
from dari.daemon.stub import make_stub
from dari.terminal.desks.clipboard import ClipboardDesk
from dari.terminal.desks.contexts import ContextDesk
from dari.terminal.desks.coordination import CoordinationDesk
from dari.terminal.desks.ime import ImeDesk
from dari.terminal.desks.insights import InsightDesk
from dari.terminal.desks.snapshots import SnapshotDesk
from dari.terminal.desks.streams import StreamDesk
from dari.terminal.desks.workspaces import WorkspaceDesk

if TYPE_CHECKING:
    from dari.terminal.multiplexer import Multiplexer


@dataclass(slots=True, frozen=True)
class SpecialDesks:
    insights: InsightDesk
    ime: ImeDesk
    clipboard: ClipboardDesk
    workspaces: WorkspaceDesk
    streams: StreamDesk
    coordination: CoordinationDesk
    contexts: ContextDesk
    snapshots: SnapshotDesk

    @property
    def desks(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self))


def local_special(multiplexer: Multiplexer, sessions_path: Path) -> SpecialDesks:
    """Files go beside the sessions: `snapshots/` and, of the user's own making, `workspaces/`."""
    folder = sessions_path.parent
    return SpecialDesks(
        InsightDesk(multiplexer),
        ImeDesk(multiplexer),
        ClipboardDesk(multiplexer),
        WorkspaceDesk(multiplexer, folder / "workspaces"),
        StreamDesk(multiplexer),
        CoordinationDesk(multiplexer),
        ContextDesk(multiplexer),
        SnapshotDesk(multiplexer, folder / "snapshots"),
    )


def remote_special(client: DaemonClient) -> SpecialDesks:
    return SpecialDesks(
        make_stub(InsightDesk, client),
        make_stub(ImeDesk, client),
        make_stub(ClipboardDesk, client),
        make_stub(WorkspaceDesk, client),
        make_stub(StreamDesk, client),
        make_stub(CoordinationDesk, client),
        make_stub(ContextDesk, client),
        make_stub(SnapshotDesk, client),
    )
