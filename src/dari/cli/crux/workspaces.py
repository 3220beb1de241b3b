"""`crux load-workspace`."""

from __future__ import annotations

import argparse
import os

from dari.cli.crux.options import OK, USAGE, Crux

STARTS = ("load-workspace",)
EXAMPLES = {
    "load-workspace": """
crux load-workspace --list                     names, and what each opens
crux load-workspace full-stack --cwd ~/app     in a new window; prints name and id of each pane
crux load-workspace ./team.toml --replace      panes of the same names are ended first
crux load-workspace debug-session --command 'logs=tail -f app.log'
""",
}


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
    from dari.cli.crux.output import table
    from dari.errors import InvalidInput

    if arguments.list:
        found = crux.call("crux:workspace/list")
        rows = [(each["name"], ", ".join(each["panes"]), each.get("description", "")) for each in found["workspaces"]]
        crux.out.show(found, table(rows) if rows else ["no workspaces"])
        return OK
    if not arguments.name:
        raise InvalidInput("no workspace was named", "crux load-workspace --list shows them")
    name = os.path.abspath(os.path.expanduser(arguments.name)) if "/" in arguments.name else arguments.name
    pairs = [text.partition("=") for text in arguments.command]
    if wrong := next((text for text in pairs if not text[1]), None):
        raise InvalidInput(f"{wrong[0][:40]!r} names no pane", "write --command PANE=TEXT")
    loaded = crux.call(
        "crux:workspace/load",
        name=name,
        cwd=os.path.abspath(os.path.expanduser(arguments.cwd or ".")),
        commands={pane: text for pane, _, text in pairs} or None,
        replace=arguments.replace,
        run=not arguments.no_run,
    )
    crux.out.show(loaded, table([(pane["name"], pane["id"]) for pane in loaded["panes"]]))
    return OK if loaded["panes"] else USAGE
