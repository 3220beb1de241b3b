"""`disable`: keep a server written down, and let nobody use it."""

from __future__ import annotations

import argparse

from dari.cli.remote.switching import end_servers, tell_switched
from dari.cli.remote.world import World

NAME = "disable"
HELP = "keep a server in mcp.json, but never start or reach it"
EXAMPLES = (("disable time", "a running daemon ends it at once"),)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run(arguments: argparse.Namespace, world: World) -> int:
    path = world.view.book.disable(arguments.id)
    await end_servers(world, path, arguments.id)
    return tell_switched(world, arguments.id, "disabled", path)
