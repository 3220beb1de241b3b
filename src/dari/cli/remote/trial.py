"""`test`: start or reach servers and tell every step."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from functools import partial

from dari.cli.remote.failures import NETWORK
from dari.cli.remote.hints import as_typed
from dari.cli.remote.payloads import print_json
from dari.cli.remote.sheets import painted, plain, print_lines
from dari.cli.remote.terminal import Terminal
from dari.cli.remote.trial_steps import Step, Trial
from dari.cli.remote.world import World
from dari.errors import InvalidInput
from dari.text.sanitize import escape_hidden

NAME = "test"
HELP = "try a server step by step: profile, program or address, sandbox, start, protocol, tools, schemas"
DESCRIPTION = """\
Try servers as if for the first time, each in a session of its own that is ended again: does the profile resolve, is
the program there, what does the sandbox hold, does it start, which protocol does it speak, are its tools and their
schemas in order. Servers are tried in turns, as many at once as there are processors, and the time of each counts
from its turn; one that hangs delays no other. A command that downloads first (npx, uvx) is given minutes."""
EXAMPLES = (
    ("test time", "one server, step by step"),
    ("test time files", "two at once"),
    ("test --all", "every server that is written down; exit code 2 if one fails"),
    ("test --all --json", "the same for a script"),
)
_MARKS = {"ok": ("ok  ", "green"), "warning": ("warn", "yellow"), "failed": ("FAIL", "red")}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="id", help="the names of the servers")
    parser.add_argument("--all", action="store_true", help="every server but the disabled ones")
    parser.add_argument("--json", action="store_true", help="print every step as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    catalog = world.view.catalog()
    if bool(arguments.ids) == arguments.all:
        raise InvalidInput("name servers, or use --all", f"{world.program} test NAME")
    if arguments.all:
        ids = tuple(one.id for one in catalog.listed if one.state != "disabled")
        if not ids:
            raise InvalidInput("there is no server to test", f"add one: {world.program} add")
    else:
        ids = tuple(dict.fromkeys(arguments.ids))
    for id in ids:
        catalog.find(id)  # a name that does not exist is an error before anything starts
    return await run_trials(world, ids, as_json=arguments.json)


async def run_trials(world: World, ids: Sequence[str], *, as_json: bool) -> int:
    """0, or 2 when one of them failed. One alone is told while it goes on, several one after another."""
    terminal = world.terminal
    is_live = len(ids) == 1 and not as_json
    trials = [
        Trial(
            id,
            on_step=(lambda step: print_lines(terminal, _lines(step, terminal))) if is_live else lambda step: None,
            on_note=partial(_note, world, id),
            is_alone=len(ids) == 1,
        )
        for id in ids
    ]
    if is_live:
        print_lines(terminal, [painted(plain(ids[0]), "bold", terminal)])

    catalog = world.view.catalog()

    async def go(trial: Trial) -> Trial:
        await trial.run(world.bridge, world.view, catalog)
        return trial

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(go(trial)) for trial in trials]
        for done in asyncio.as_completed(tasks):
            trial = await done
            if not as_json and not is_live:
                lines = [line for step in trial.steps for line in _lines(step, terminal)]
                print_lines(terminal, [painted(plain(trial.id), "bold", terminal), *lines])
    failed = [trial.id for trial in trials if not trial.is_ok]
    if as_json:
        print_json(terminal, {"ok": not failed, "servers": [_payload(trial) for trial in trials]})
    elif not is_live:
        terminal.out(f"{len(trials) - len(failed)} of {len(trials)} servers work\n")
    return NETWORK if failed else 0


def _note(world: World, id: str, note: str) -> None:
    world.note(f"{id}: {note}")


def _lines(step: Step, terminal: Terminal) -> list[str]:
    word, style = _MARKS[step.mark]
    told = [f"  {painted(word, style, terminal)}  {step.name:<10} {step.ms:7.1f} ms  {plain(step.found)}".rstrip()]
    # The last words of a child have several lines.
    for number, line in enumerate(escape_hidden(as_typed(step.hint)).splitlines() if step.hint else ()):
        told.append(f"        {'hint: ' if number == 0 else '  '}{line}")
    return told


def _payload(trial: Trial) -> dict[str, object]:
    steps = [
        {"name": one.name, "status": one.mark, "found": one.found, "hint": as_typed(one.hint), "ms": round(one.ms, 1)}
        for one in trial.steps
    ]
    return {"id": trial.id, "ok": trial.is_ok, "steps": steps}
