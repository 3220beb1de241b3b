"""`doctor`: everything that can be wrong with the bridge here, with the next step for each."""

from __future__ import annotations

import argparse

from dari.cli.remote.checks import Check, look
from dari.cli.remote.failures import USAGE
from dari.cli.remote.hints import as_typed
from dari.cli.remote.payloads import print_json
from dari.cli.remote.sheets import painted, plain, print_lines
from dari.cli.remote.world import World
from dari.text.sanitize import escape_hidden

NAME = "doctor"
HELP = "check files, servers, daemon, sandbox, programs, pins, approvals and the audit log"
DESCRIPTION = """\
Look at everything that servers depend on here, start none of them, and tell what to do where something is wrong.
To start servers as well: test --all. Exit code 1 when something is wrong that needs you."""
EXAMPLES = (
    ("doctor", "every check, one a line"),
    ("doctor --json", "the same for a script, or for a bug report: no secret is in it"),
)
_MARKS = {"ok": ("ok  ", "green"), "warning": ("warn", "yellow"), "failed": ("FAIL", "red")}
_ORDER = ("ok", "warning", "failed")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    checks = await look(world)
    worst = max((check.mark for check in checks), key=_ORDER.index, default="ok")
    if arguments.json:
        told = [
            {"name": one.name, "status": one.mark, "found": one.found, "hint": as_typed(one.hint)} for one in checks
        ]
        print_json(world.terminal, {"status": worst, "checks": told})
    else:
        for check in checks:
            print_lines(world.terminal, _lines(check, world))
    return USAGE if worst == "failed" else 0


def _lines(check: Check, world: World) -> list[str]:
    word, style = _MARKS[check.mark]
    told = [f"{painted(word, style, world.terminal)}  {check.name:<9} {plain(check.found)}"]
    return told + [f"      hint: {line}" for line in escape_hidden(as_typed(check.hint)).splitlines()]
