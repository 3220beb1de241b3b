"""`crux info | kill-server`."""

from __future__ import annotations

import argparse
import os
import select

from dari.cli.crux.line import Line
from dari.cli.crux.options import OK, Crux

END_S = 20.0

EXAMPLES = {
    "info": """
crux info
crux info --json | jq -r .socket
""",
    "kill-server": """
crux kill-server                               every program in every pane is ended
""",
}


def add_info(parser: argparse.ArgumentParser) -> None:
    pass


def add_kill_server(parser: argparse.ArgumentParser) -> None:
    pass


def run_info(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.cli.crux.output import table

    if not crux.line.is_up():
        socket = crux.line.place.mcp_socket_text
        crux.out.show({"running": False, "socket": socket}, [f"not running: nobody answers on {socket}"])
        return OK
    found = crux.call("crux:server/info")
    found["pid"] = crux.line.server_pid() or found["pid"]
    rows = [(name, str(found[name])) for name in ("pid", "version", "socket", "panes", "clients", "uptime_s")]
    crux.out.show({"running": True, **found}, table(rows))
    return OK


def run_kill_server(arguments: argparse.Namespace, crux: Crux) -> int:
    if not crux.line.is_up():
        crux.out.show({"success": True, "was_running": False}, ["no server runs"])
        return OK
    end_server(crux.line)
    crux.out.show({"success": True, "was_running": True})
    return OK


def end_server(line: Line) -> None:
    """Return once its process is gone; where the kernel cannot tell, once it has hung up."""
    process = _watched(line.server_pid())
    line.call("crux:server/kill")
    line.wait_end()
    if process is not None:
        select.select([process], [], [], END_S)
        os.close(process)


def _watched(pid: int) -> int | None:
    if not pid:
        return None
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
