"""`list`: the servers; `list SERVER`: the tools of one. Short for `servers` and `list-tools`."""

from __future__ import annotations

import argparse

from dari.cli.remote import list_tools, servers
from dari.cli.remote.world import World

NAME = "list"
HELP = "List the servers, or the tools of one: short for servers and list-tools."
EXAMPLES = (
    ("list", "the servers, as `servers` shows them"),
    ("list fs", "the tools of one server"),
    ("list https://mcp.example.com/mcp", "the tools of a server without a profile"),
    ("list --stdio 'npx -y some-server'", "… of one that runs as long as this command"),
)


def add(parser: argparse.ArgumentParser) -> None:
    list_tools.add(parser)


async def run(arguments: argparse.Namespace, world: World) -> int:
    names_one = (arguments.id, arguments.server, arguments.endpoint, arguments.stdio, arguments.all, arguments.refresh)
    if any(names_one):
        return await list_tools.run(arguments, world)
    return await servers.run(arguments, world)
