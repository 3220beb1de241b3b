"""`enable`: let a server run again."""

from __future__ import annotations

import argparse

from dari.cli.remote.switching import tell_switched
from dari.cli.remote.world import World

NAME = "enable"
HELP = "let a disabled server run again"
EXAMPLES = (("enable time", "from now on; nothing has to be restarted"),)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run(arguments: argparse.Namespace, world: World) -> int:
    path = world.view.book.enable(arguments.id)
    return tell_switched(world, arguments.id, "enabled", path)
