"""`rename`: another name for a server."""

from __future__ import annotations

import argparse

from dari.cli.remote.consent import pinned_as
from dari.cli.remote.sheets import plain
from dari.cli.remote.world import World

NAME = "rename"
HELP = "give a server another name; sets that name it follow"
EXAMPLES = (("rename filesystem files", "tools are then called files/read_file, files__read_file in the gateway"),)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="its name now")
    parser.add_argument("new", help="its new name")


async def run(arguments: argparse.Namespace, world: World) -> int:
    pins = pinned_as(world, arguments.id)
    path = world.view.book.rename(arguments.id, arguments.new)
    world.terminal.out(f"renamed '{plain(arguments.id)}' to '{plain(arguments.new)}' in {plain(path)}\n")
    if world.bridge.pins.pinned(pins):
        world.terminal.err("its pins stay under the old name: the next use under the new one is a first use\n")
    return 0
