"""`import`: servers of other programs, shown first and then copied."""

from __future__ import annotations

import argparse
from pathlib import Path

from dari.bridge.config.importers.plan import ImportCandidate, ImportPlan
from dari.bridge.config.importers.sources import PROGRAMS
from dari.bridge.config.schema import ProgramName
from dari.cli.remote.add import add_layer, layer_of
from dari.cli.remote.additions import literal_secrets
from dari.cli.remote.consent import DECLINED, agrees
from dari.cli.remote.payloads import print_json
from dari.cli.remote.sheets import painted, plain, print_lines, table, warn
from dari.cli.remote.world import World
from dari.errors import InvalidInput

NAME = "import"
HELP = "copy servers from Claude, Cursor, VS Code, Codex, Gemini, Windsurf and OpenCode"
DESCRIPTION = """\
Copy servers that other programs have into mcp.json. The plan is shown first: what is new, what is there already
(same), what has a name that is taken (conflict), and what cannot be copied (skipped) with the reason."""
EXAMPLES = (
    ("import", "from every program that is here; asks before it writes"),
    ("import claude-desktop cursor --dry-run", "show the plan and stop"),
    ("import vscode --project --yes", "into the project's file, without a question"),
    ("import codex --take-conflicts", "copy also what has a name that is taken, under a free one"),
)
_WORDS = {"new": "new", "duplicate": "same", "conflict": "conflict", "broken": "skipped"}
_STYLES = {"new": "green", "duplicate": "dim", "conflict": "yellow", "broken": "red"}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"{', '.join(PROGRAMS)} (default: all)")
    add_layer(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the plan, write nothing")
    parser.add_argument("--take-conflicts", action="store_true", help="copy conflicts under the free names shown")
    parser.add_argument("--yes", "-y", action="store_true", help="write without asking")
    parser.add_argument("--json", action="store_true", help="print the plan, and what was written, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    terminal, book, layer = world.terminal, world.view.book, layer_of(arguments)
    plan = book.plan_import(_chosen(arguments.programs))
    file = book.around.file_of(layer)
    taken = [*plan.of("new"), *(plan.of("conflict") if arguments.take_conflicts else ())]
    if not arguments.json:
        print_lines(terminal, _table(plan, arguments.take_conflicts, world))
    warn(terminal, plan.notes)
    if layer == "project":
        warn(terminal, _exposed(taken, file))
    written: tuple[str, ...] = ()
    code = 0
    if taken and not arguments.dry_run:
        question = f"write {len(taken)} server{'s' * (len(taken) != 1)} to {file}?"
        if await agrees(terminal, question, is_given=arguments.yes, instead="--yes, or --dry-run"):
            written = book.run_import(plan, layer, arguments.take_conflicts)
        else:
            code = DECLINED
    if arguments.json:
        print_json(terminal, _payload(plan, file, written))
    elif written:
        terminal.out(f"wrote {', '.join(map(plain, written))} to {plain(file)}\n")
    elif code:
        terminal.err("nothing was written\n")
    elif not taken:
        terminal.err("nothing to import\n")
    return code


def _chosen(names: list[str]) -> tuple[ProgramName, ...] | None:
    """None: all of them."""
    for name in names:
        if name not in PROGRAMS:
            from difflib import get_close_matches

            close = get_close_matches(name, PROGRAMS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(PROGRAMS)}"
            raise InvalidInput(f"'{name[:60]}' is no program that servers are imported from", hint)
    return tuple(program for program in PROGRAMS if program in names) or None


def _table(plan: ImportPlan, takes_conflicts: bool, world: World) -> list[str]:
    if not plan.candidates:
        return ["no servers were found"]
    rows = [("", "NAME", "PROGRAM", "RUNS OR REACHES", "FROM")]
    rows += [(_WORDS[one.status], one.id, one.program, one.address or "-", str(one.source)) for one in plan.candidates]
    heading, *lines = table(rows)
    shown = [painted(heading, "bold", world.terminal)]
    for one, line in zip(plan.candidates, lines, strict=True):
        word = _WORDS[one.status]
        shown.append(painted(word, _STYLES[one.status], world.terminal) + line[len(word) :])
        reason = one.reason
        if one.status == "conflict":
            reason += f"; {'copied' if takes_conflicts else 'with --take-conflicts it is copied'} as '{one.free_id}'"
        shown += [f"          {plain(told)}" for told in (reason, *one.notes) if told]
    return shown


def _exposed(taken: list[ImportCandidate], file: Path) -> list[str]:
    return [
        f"{', '.join(fields)} of '{one.id}' would stand in {file} in the clear, for everybody who has the project"
        for one in taken
        if (fields := literal_secrets(one.entry))
    ]


def _payload(plan: ImportPlan, file: Path, written: tuple[str, ...]) -> dict[str, object]:
    return {
        "candidates": [
            {
                "id": one.id,
                "program": one.program,
                "source": {"file": one.source.file, "line": one.source.line},
                "status": one.status,
                "address": one.address,
                "reason": one.reason,
                "notes": list(one.notes),
                "freeId": one.free_id or None,
            }
            for one in plan.candidates
        ],
        "notes": list(plan.notes),
        "file": str(file),
        "written": list(written),
    }
