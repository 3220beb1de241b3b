"""`crux save-session | restore-session | list-sessions`."""

from __future__ import annotations

import argparse

from dari.cli.crux.options import OK, Crux

STARTS = ("restore-session", "list-sessions")
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
    from dari.cli.crux.output import table

    found = crux.call("crux:session/list")
    rows = [("SESSION", "PANES", "SAVED", "SIZE")]
    for each in found["sessions"]:
        rows.append((each["session_id"], str(each["panes"]), _when(each["saved_unix"]), f"{each['size_bytes']} B"))
    crux.out.show(found, table(rows) if found["sessions"] else ["no sessions (crux save-session NAME)"])
    return OK


def _when(moment: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
