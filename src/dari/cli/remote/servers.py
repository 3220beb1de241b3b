"""`servers`: the profiles, from where they were typed, with what may run and what may not."""

from __future__ import annotations

import argparse
from typing import Any

from dari.bridge.config.catalog import Catalog, CatalogEntry, to_public_json
from dari.bridge.upstream.status import Status
from dari.cli.remote.failures import OK
from dari.cli.remote.payloads import print_json, print_table
from dari.cli.remote.world import World

NAME = "servers"
HELP = "List the server profiles: kind, address, state, and where each is written down."
DESCRIPTION = """\
List the server profiles. They are read from the file that CREWX_MCP_JSON names, then ./.crewx/mcp.json
(once you trust it), then ~/.config/crewx/mcp.json; a name counts where it first stands.
NOW is what the daemon knows of a server that was used: queued · starting · ready · idle · backoff · crash-loop · known
(its lists are remembered).
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
        statuses = _statuses(world)
        print_json(world.terminal, [_as_json(one, catalog, statuses.get(one.id)) for one in catalog.listed])
    elif catalog.listed:
        statuses = _statuses(world)
        rows = [_row(one, catalog, statuses.get(one.id)) for one in catalog.listed]
        print_table(world.terminal, ("SERVER", "KIND", "STATE", "NOW", "DEFAULT", "ADDRESS", "WRITTEN IN"), rows)
        for status in statuses.values():
            _tell(status, world)
    else:
        world.say("no server profiles")
        world.note("hint: dari remote add, dari remote import, or write ~/.config/crewx/mcp.json")
    for problem in catalog.problems:
        world.warn(problem)
    for one in catalog.listed:
        if one.message:
            world.warn(one.message, one.hint)
    return OK


def _statuses(world: World) -> dict[str, Status]:
    """Of the servers that somebody has used since the daemon's start, from here; the worst state of each name."""
    found: dict[str, Status] = {}
    here = {listed.id for listed in world.view.catalog().listed}
    for status in world.bridge.statuses():
        if status.id in here and (status.id not in found or status.failures > found[status.id].failures):
            found[status.id] = status
    return found


def _as_json(listed: CatalogEntry, catalog: Catalog, status: Status | None) -> dict[str, Any]:
    now = None
    if status is not None:
        now = {
            "state": status.state,
            "doing": status.doing,
            "failures": status.failures,
            "lastError": status.last_error,
            "retryInS": status.retry_in_s,
        }
    return {**to_public_json(listed), "default": listed.id == catalog.default_id, "now": now}


def _row(listed: CatalogEntry, catalog: Catalog, status: Status | None) -> tuple[str, ...]:
    address = listed.profile.address if listed.profile else "-"
    default = "yes" if listed.id == catalog.default_id else ""
    now = "-" if status is None else status.state
    return listed.id, listed.kind or "-", listed.state, now, default, address, str(listed.source)


def _tell(status: Status, world: World) -> None:
    """What a person should know about a server that does not simply work."""
    if status.doing:
        world.note(f"{status.id}: {status.doing}")
    elif status.state in ("backoff", "crash-loop"):
        when = "" if status.retry_in_s is None else f", next try in {status.retry_in_s:.0f} s"
        hint = f"mend it, then try it at once: {world.program} prewarm --server {status.id}"
        world.warn(f"{status.id}: {status.state}{when}: {status.last_error}", hint)
