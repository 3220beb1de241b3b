"""`distrust`: take the trust in a project's file back."""

from __future__ import annotations

import argparse
from pathlib import Path

from dari.cli.remote.consent import decisions
from dari.cli.remote.sheets import plain
from dari.cli.remote.switching import end_servers
from dari.cli.remote.world import World

NAME = "distrust"
HELP = "take the trust in a project's mcp.json back: nothing in it runs"
EXAMPLES = (("distrust", "the project's file where you are; its servers are ended"),)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="default: ./.crewx/mcp.json")


async def run(arguments: argparse.Namespace, world: World) -> int:
    book = world.view.book
    given = Path(book.around.cwd, arguments.file).expanduser() if arguments.file else None
    path = given or book.trust_state()[0]
    if not decisions(world).distrust(book, path):
        world.terminal.err(f"{plain(path)} was not trusted\n")
        return 0
    await end_servers(world, path)
    world.terminal.out(f"{plain(path)} is not trusted any more\n")
    return 0
