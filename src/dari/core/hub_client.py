"""Calls to the hub from other daemons: started when it does not run, refused when an agent may have started it."""

from __future__ import annotations

from dari.core.approval_service import ApprovalService
from dari.daemon.client import DaemonClient
from dari.daemon.launch import python_command
from dari.daemon.paths import DaemonPaths
from dari.daemon.peer import PeerCredentials
from dari.daemon.person import has_mark, is_branded
from dari.daemon.stub import make_stub
from dari.errors import Denied

NAME = "bridge"


def hub_client(principal: str, *, starts: bool = True) -> DaemonClient:
    """Calls to the hub's control socket."""
    command = python_command("dari.cli.hub.main", "serve") if starts else None
    return DaemonClient(DaemonPaths(NAME), principal, command=command, check_server=refuse_confined_hub)


def hub_approvals(principal: str = "mcp", *, starts: bool = True) -> ApprovalService:
    """The one approval queue, from another process."""
    return make_stub(ApprovalService, hub_client(principal, starts=starts))


def refuse_confined_hub(peer: PeerCredentials) -> None:
    """A program in a pane could answer on the hub's socket in its place, and approve what it likes."""
    if peer.pid is None or is_branded(peer.pid) or has_mark(peer.pid):
        raise Denied(
            f"the hub (process {peer.pid}) runs in a pane or in a server that we run, so its approvals do not count",
            "start it in a terminal of your own: dari remote daemon stop, then dari remote daemon start",
        )
