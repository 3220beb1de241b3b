"""`crux save-session | restore-session | list-sessions | load-workspace | info | kill-server`."""

from __future__ import annotations

import argparse
import os
import select

from dari.cli.crux.client import CruxClient
from dari.cli.crux.options import OK, USAGE, Crux

STARTS = (
    "restore-session",
    "list-sessions",
    "load-workspace",
)
EXAMPLES = {
    "save-session": """
crux save-session friday                       prints the session's id
crux save-session --no-scrollback
""",
    "restore-session": """
crux restore-session friday                    layout, directories, scrollback, in windows of their own
crux restore-session friday --commands         and run again what was running
crux restore-session friday --replace          and end the panes that are open now
""",
    "list-sessions": """
crux list-sessions                             newest first
crux list-sessions --json
""",
    "load-workspace": """
crux load-workspace --list                     names, and what each opens
crux load-workspace full-stack --cwd ~/app     in a new window; prints name and id of each pane
crux load-workspace ./team.toml --replace      panes of the same names are ended first
crux load-workspace debug-session --command 'logs=tail -f app.log'
""",
    "info": """
crux info
crux info --json | jq -r .socket
""",
    "kill-server": """
crux kill-server                               every program in every pane is ended
""",
}


def add_save_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", default="", help="default: one is made")
    parser.add_argument("--no-scrollback", action="store_true", help="layout and directories only")


def add_restore_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="as save-session printed it")
    parser.add_argument("--commands", action="store_true", help="run again what was running")
    parser.add_argument("--replace", action="store_true", help="end the panes that are open now")


def add_list_sessions(parser: argparse.ArgumentParser) -> None:
    pass


def run_save_session(arguments: argparse.Namespace, crux: Crux) -> int:
    saved = crux.call("crux:session/save", name=arguments.name, scrollback=not arguments.no_scrollback)
    crux.out.show(saved, [saved["session_id"]])
    return OK


def run_restore_session(arguments: argparse.Namespace, crux: Crux) -> int:
    restored = crux.call(
        "crux:session/restore", session_id=arguments.session, commands=arguments.commands, instead=arguments.replace
    )
    crux.out.show(restored, restored["panes"])
    return OK


def run_list_sessions(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.cli.kit.table import format_table

    found = crux.call("crux:session/list")
    rows = [("SESSION", "PANES", "SAVED", "SIZE")]
    for each in found["sessions"]:
        rows.append((each["session_id"], str(each["panes"]), _when(each["saved_unix"]), f"{each['size_bytes']} B"))
    crux.out.show(found, format_table(rows) if found["sessions"] else ["no sessions (crux save-session NAME)"])
    return OK


def _when(moment: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def add_load_workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a name, or the path of a .toml file")
    parser.add_argument("--list", action="store_true", help="show the workspaces that there are")
    parser.add_argument("--cwd", metavar="DIR", default="", help="where its panes start (default: here)")
    parser.add_argument(
        "--command", metavar="PANE=TEXT", action="append", default=[], help="run this in a pane instead; repeatable"
    )
    parser.add_argument("--no-run", action="store_true", help="open the panes and run nothing in them")
    parser.add_argument("--replace", action="store_true", help="end panes of the same names first")


def run_load_workspace(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.cli.kit.table import format_table
    from dari.errors import InvalidInput

    if arguments.list:
        found = crux.call("crux:workspace/list")
        rows = [(each["name"], ", ".join(each["panes"]), each.get("description", "")) for each in found["workspaces"]]
        crux.out.show(found, format_table(rows) if rows else ["no workspaces"])
        return OK
    if not arguments.name:
        raise InvalidInput("no workspace was named", "crux load-workspace --list shows them")
    name = os.path.abspath(os.path.expanduser(arguments.name)) if "/" in arguments.name else arguments.name
    pairs = [text.partition("=") for text in arguments.command]
    if wrong := next((text for text in pairs if not text[1]), None):
        raise InvalidInput(f"--command must be PANE=TEXT, got {wrong[0][:40]!r}", "name a pane of the workspace")
    loaded = crux.call(
        "crux:workspace/load",
        name=name,
        cwd=os.path.abspath(os.path.expanduser(arguments.cwd or ".")),
        commands={pane: text for pane, _, text in pairs} or None,
        replace=arguments.replace,
        run=not arguments.no_run,
    )
    crux.out.show(loaded, format_table([(pane["name"], pane["id"]) for pane in loaded["panes"]]))
    return OK if loaded["panes"] else USAGE


END_S = 20.0


def add_info(parser: argparse.ArgumentParser) -> None:
    pass


def add_kill_server(parser: argparse.ArgumentParser) -> None:
    pass


def run_info(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.cli.kit.table import format_table

    if not crux.client.is_up():
        socket = crux.client.place.mcp_socket_text
        crux.out.show({"running": False, "socket": socket}, [f"not running: nobody answers on {socket}"])
        return OK
    found = crux.call("crux:server/info")
    found["pid"] = crux.client.server_pid() or found["pid"]
    rows = [(name, str(found[name])) for name in ("pid", "version", "socket", "panes", "clients", "uptime_s")]
    crux.out.show({"running": True, **found}, format_table(rows))
    return OK


def run_kill_server(arguments: argparse.Namespace, crux: Crux) -> int:
    if not crux.client.is_up():
        crux.out.show({"success": True, "was_running": False}, ["no server runs"])
        return OK
    end_server(crux.client)
    crux.out.show({"success": True, "was_running": True})
    return OK


def end_server(client: CruxClient) -> None:
    """Return once its process is gone; where the kernel cannot tell, once it has hung up."""
    process = _watched(client.server_pid())
    client.call("crux:server/kill")
    client.wait_end()
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
