"""`pins`: what is pinned of a server."""

from __future__ import annotations

import argparse
from datetime import datetime

import msgspec

from dari.cli.remote.consent import pinned_as
from dari.cli.remote.payloads import print_json
from dari.cli.remote.sheets import plain, print_lines, table
from dari.cli.remote.world import World

NAME = "pins"
HELP = "show what is pinned of a server, what is held, and every decision about it"
EXAMPLES = (
    ("pins files", "each item with the start of its hash"),
    ("pins files --history", "what was pinned, held, approved and rejected, by whom and when"),
    ("pins files --json", "with whole hashes"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", help="its name")
    parser.add_argument("--history", action="store_true", help="the last 100 decisions, newest first")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    pins, terminal, server = world.bridge.pins, world.terminal, pinned_as(world, arguments.server)
    pinned, held = pins.pinned(server), pins.held(server)
    history = pins.history(server)
    if arguments.json:
        told = {"server": server, "pinned": pinned, "held": held, "history": history if arguments.history else []}
        print_json(terminal, msgspec.to_builtins(told))
        return 0
    if arguments.history:
        rows = [
            (
                _moment(one.at),
                one.event,
                one.kind,
                one.name or "-",
                f"{one.old[:8] or '-'} → {one.new[:8] or '-'}",
                one.by,
            )
            for one in history
        ]
        print_lines(terminal, table(rows) if rows else [f"nothing has happened to the pins of {plain(server)}"])
        return 0
    if not pinned and not held:
        terminal.out(f"nothing is pinned of {plain(server)}: its next listing is a first use\n")
        return 0
    several = len({one.profile for one in pinned}) > 1
    items: list[tuple[str, ...]] = [
        (one.kind, one.name or "-", one.digest[:12], one.state, one.profile[:8] if several else "") for one in pinned
    ]
    items += [(one.kind, one.name or "-", one.digest[:12], f"held: {one.reason}", one.rejected_by) for one in held]
    print_lines(terminal, table(items))
    if held:
        terminal.err(f"look at what is held: {world.program} approve {plain(server)}\n")
    return 0


def _moment(unix: float) -> str:
    return datetime.fromtimestamp(unix).astimezone().strftime("%Y-%m-%d %H:%M:%S")
