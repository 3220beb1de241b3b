"""`forget-pins`: the next listing of a server is a first use."""

from __future__ import annotations

import argparse

from dari.cli.remote.consent import DECLINED, agrees, decisions, pinned_as
from dari.cli.remote.sheets import plain
from dari.cli.remote.world import World

NAME = "forget-pins"
HELP = "drop all pins of a server: what it shows next is taken as its first"
EXAMPLES = (("forget-pins files", "after you replaced it by another server of the same name"),)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", help="its name")
    parser.add_argument("--yes", "-y", action="store_true", help="without a question")


async def run(arguments: argparse.Namespace, world: World) -> int:
    pins, terminal, server = world.bridge.pins, world.terminal, pinned_as(world, arguments.server)
    pinned, held = pins.pinned(server), pins.held(server)
    if not pinned and not held:
        terminal.err(f"nothing is pinned of {plain(server)}\n")
        return 0
    if held:
        terminal.err(f"{len(held)} of its items are held now, and would be shown without a look at them\n")
    question = f"forget {len(pinned)} pins of {plain(server)}, and trust what it shows next?"
    if not await agrees(terminal, question, is_given=arguments.yes):
        terminal.err("nothing was forgotten\n")
        return DECLINED
    count = decisions(world).forget(server)
    terminal.out(f"forgot {count} pins of {plain(server)}\n")
    return 0
