"""`remove`: take a server out of the file it stands in."""

from __future__ import annotations

import argparse

from dari.cli.remote.consent import pinned_as
from dari.cli.remote.sheets import plain
from dari.cli.remote.switching import end_servers
from dari.cli.remote.world import World

NAME = "remove"
HELP = "take a server out of mcp.json"
EXAMPLES = (("remove time", "out of the file that counts; the rest of the file stays as it is"),)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run(arguments: argparse.Namespace, world: World) -> int:
    book, terminal = world.view.book, world.terminal
    id = arguments.id
    pins = pinned_as(world, id)
    path = book.remove(id)
    await end_servers(world, path, id)
    terminal.out(f"removed '{plain(id)}' from {plain(path)}\n")
    again = next((one for one in book.load().listed if one.id == id), None)
    if again is not None:
        terminal.err(f"'{plain(id)}' of {plain(again.source)} counts now\n")
    elif world.bridge.pins.pinned(pins):
        terminal.err(f"what was pinned of it stays; to forget it: {world.program} forget-pins {plain(pins)}\n")
    return 0
