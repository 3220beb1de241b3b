"""`schema`: the JSON Schema of mcp.json."""

from __future__ import annotations

import argparse

from dari.cli.remote.world import World

NAME = "schema"
HELP = "print the JSON Schema of mcp.json, for editors and checks"
EXAMPLES = (("schema > mcp.schema.json", 'name the file in "$schema" of mcp.json: editors then complete and check it'),)


def add(parser: argparse.ArgumentParser) -> None:
    """It takes no options of its own."""


async def run(arguments: argparse.Namespace, world: World) -> int:
    from dari.bridge.config.json_schema import schema_text

    world.terminal.out(schema_text())
    return 0
