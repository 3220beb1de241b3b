"""`test`: start or reach servers and tell every step."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from functools import partial

from dari.bridge.connection_test import ConnectionTest, TestStep
from dari.cli.kit.console import Console, paint, print_json, print_lines
from dari.cli.kit.hints import name_program
from dari.cli.kit.parser import Command
from dari.cli.kit.table import one_line
from dari.cli.remote.context import NETWORK, CommandContext
from dari.errors import InvalidInput
from dari.text.sanitize import escape_hidden

_MARKS = {"ok": ("ok  ", "green"), "warning": ("warn", "yellow"), "failed": ("FAIL", "red")}


def add_test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="id", help="the names of the servers")
    parser.add_argument("--all", action="store_true", help="every server but the disabled ones")
    parser.add_argument("--json", action="store_true", help="print every step as JSON")


async def run_test(arguments: argparse.Namespace, context: CommandContext) -> int:
    catalog = context.view.catalog()
    if bool(arguments.ids) == arguments.all:
        raise InvalidInput("name servers, or use --all", f"{context.program} test NAME")
    if arguments.all:
        ids = tuple(one.id for one in catalog.listed if one.state != "disabled")
        if not ids:
            raise InvalidInput("no server is configured", f"add one: {context.program} add")
    else:
        ids = tuple(dict.fromkeys(arguments.ids))
    for id in ids:
        catalog.find(id)  # a name that does not exist is an error before anything starts
    return await run_tests(context, ids, as_json=arguments.json)


async def run_tests(context: CommandContext, ids: Sequence[str], *, as_json: bool) -> int:
    """0, or 2 when one of them failed. One server is reported step by step, several one after another."""
    console = context.console
    is_live = len(ids) == 1 and not as_json
    trials = [
        ConnectionTest(
            id,
            on_step=(lambda step: print_lines(console, _lines(step, console))) if is_live else lambda step: None,
            on_note=partial(_note, context, id),
            is_alone=len(ids) == 1,
        )
        for id in ids
    ]
    if is_live:
        print_lines(console, [paint(one_line(ids[0]), "bold", console)])

    catalog = context.view.catalog()

    async def go(trial: ConnectionTest) -> ConnectionTest:
        await trial.run(context.bridge, context.view, catalog)
        return trial

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(go(trial)) for trial in trials]
        for done in asyncio.as_completed(tasks):
            trial = await done
            if not as_json and not is_live:
                lines = [line for step in trial.steps for line in _lines(step, console)]
                print_lines(console, [paint(one_line(trial.id), "bold", console), *lines])
    failed = [trial.id for trial in trials if not trial.is_ok]
    if as_json:
        print_json(console, {"ok": not failed, "servers": [_payload(trial) for trial in trials]})
    elif not is_live:
        console.out(f"{len(trials) - len(failed)} of {len(trials)} servers work\n")
    return NETWORK if failed else 0


def _note(context: CommandContext, id: str, note: str) -> None:
    context.note(f"{id}: {note}")


def _lines(step: TestStep, console: Console) -> list[str]:
    word, style = _MARKS[step.mark]
    rows = [f"  {paint(word, style, console)}  {step.name:<10} {step.ms:7.1f} ms  {one_line(step.found)}".rstrip()]
    # The last words of a child have several lines.
    for number, line in enumerate(escape_hidden(name_program(step.hint)).splitlines() if step.hint else ()):
        rows.append(f"        {'hint: ' if number == 0 else '  '}{line}")
    return rows


def _payload(trial: ConnectionTest) -> dict[str, object]:
    steps = [
        {
            "name": one.name,
            "status": one.mark,
            "found": one.found,
            "hint": name_program(one.hint),
            "ms": round(one.ms, 1),
        }
        for one in trial.steps
    ]
    return {"id": trial.id, "ok": trial.is_ok, "steps": steps}


COMMANDS = (
    Command(
        "test",
        "try a server step by step: profile, program or address, sandbox, start, protocol, tools, schemas",
        add_test,
        run_test,
        description="""\
Try servers as if for the first time, each in a session of its own that is ended again: does the profile resolve, is
the program there, what does the sandbox hold, does it start, which protocol does it speak, are its tools and their
schemas in order. Servers are tried in turns, as many at once as there are processors, and the time of each counts
from its turn; one that hangs delays no other. A command that downloads first (npx, uvx) is given minutes.""",
        examples=(
            ("test time", "one server, step by step"),
            ("test time files", "two at once"),
            ("test --all", "every server that is written down; exit code 2 if one fails"),
            ("test --all --json", "the same for a script"),
        ),
    ),
)
