"""`crewx mcp list_tools`: the tools that are built in (design 001 §7, §16.2)."""

from __future__ import annotations

import argparse

from dari.cli.remote.built_in import SERVER, own_tools
from dari.cli.remote.failures import OK
from dari.cli.remote.payloads import first_sentence, print_json, print_table
from dari.cli.remote.world import World

NAME = "list_tools"
HELP = "List the tools that are built in. Other servers: crewx mcp remote list-tools"
EXAMPLES = (
    ("list_tools", "names and what they do"),
    ("list_tools --json", "with schemas, for a script"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list alone: an array of tools with their server")


async def run(arguments: argparse.Namespace, world: World) -> int:
    tools = own_tools().values()
    if arguments.json:
        print_json(world.terminal, [{"server": SERVER, **tool.listing()} for tool in tools])
        return OK
    world.say(f"server '{SERVER}' (built in): {len(tools)} tools\n")
    rows = [(f"{SERVER}/{tool.name}", first_sentence(tool.description)) for tool in tools]
    print_table(world.terminal, ("SERVER/TOOL", "WHAT IT DOES"), rows)
    return OK
