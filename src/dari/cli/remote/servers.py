"""`servers`: the profiles, from where they were typed, with what may run and what may not."""

from __future__ import annotations

import argparse
from typing import Any

from dari.bridge.profiles.catalog import Catalog, Listed
from dari.bridge.profiles.showing import shown
from dari.cli.remote.failures import OK
from dari.cli.remote.payloads import print_json, print_table
from dari.cli.remote.world import World

NAME = "servers"
HELP = "List the server profiles: kind, address, state, and where each is written down."
DESCRIPTION = """\
List the server profiles. They are read from the file that CREWX_MCP_JSON names, then ./.crewx/mcp.json
(once you trust it), then ~/.config/crewx/mcp.json; a name counts where it first stands.
States: ready · disabled · broken (the file says why) · untrusted (a project's file that nobody has agreed to)."""
EXAMPLES = (
    ("servers", "a table"),
    ("servers --json", "everything but secrets, for a script"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list alone, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    catalog = world.view.catalog()
    if arguments.json:
        print_json(world.terminal, [_as_json(one, catalog) for one in catalog.listed])
    elif catalog.listed:
        rows = [_row(one, catalog) for one in catalog.listed]
        print_table(world.terminal, ("SERVER", "KIND", "STATE", "DEFAULT", "ADDRESS", "WRITTEN IN"), rows)
    else:
        world.say("no server profiles")
        world.note("hint: dari remote add, dari remote import, or write ~/.config/crewx/mcp.json")
    for problem in catalog.problems:
        world.warn(problem)
    for one in catalog.listed:
        if one.message:
            world.warn(one.message, one.hint)
    return OK


def _as_json(listed: Listed, catalog: Catalog) -> dict[str, Any]:
    return {**shown(listed), "default": listed.id == catalog.default_id}


def _row(listed: Listed, catalog: Catalog) -> tuple[str, ...]:
    address = listed.profile.address if listed.profile else "-"
    default = "yes" if listed.id == catalog.default_id else ""
    return listed.id, listed.kind or "-", listed.state, default, address, str(listed.source)
