"""`describe`: a tool's arguments and an example call."""

from __future__ import annotations

import argparse

from dari.cli.remote.call_tool import find_tool
from dari.cli.remote.choosing import add_server, split_address, upstream_of
from dari.cli.remote.deadlines import Deadline
from dari.cli.remote.describing import describe_tool
from dari.cli.remote.failures import OK
from dari.cli.remote.payloads import print_json
from dari.cli.remote.world import World

NAME = "describe"
HELP = "Show a tool's arguments, with types and defaults, and an example call."
EXAMPLES = (
    ("describe fs/read_file", "what it takes, readable, and a call to copy"),
    ("describe read_file --server fs --json", "the tool as its server lists it, schema and all"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="the tool's name, or SERVER/TOOL")
    add_server(parser)
    parser.add_argument("--json", action="store_true", help="print the tool alone, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    server, name = split_address(arguments.tool, arguments, world)
    upstream = upstream_of(arguments, world, server)
    tool = await find_tool(upstream, name, Deadline(arguments.timeout), world)
    if arguments.json:
        print_json(world.terminal, {"server": upstream.id, **tool.shown})
    else:
        describe_tool(upstream.id, tool.shown, world)
    return OK
