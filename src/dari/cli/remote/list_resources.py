"""`list-resources`: what can be read, addresses and patterns of addresses."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dari.cli.remote.choosing import add_server
from dari.cli.remote.listing import gather
from dari.cli.remote.payloads import first_sentence, print_json, print_table
from dari.cli.remote.world import World

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream

NAME = "list-resources"
HELP = "List the resources of a server, and the patterns of addresses that it understands."
EXAMPLES = (
    ("list-resources --server docs", "addresses to read, and templates with {placeholders}"),
    ("list-resources --all --json", "those of every server, for a script"),
)


def add(parser: argparse.ArgumentParser) -> None:
    add_server(parser, has_all=True)
    parser.add_argument("--refresh", action="store_true", help="ask the server, whatever the cache holds")
    parser.add_argument("--json", action="store_true", help="print the list alone: resources, then templates, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    async def both(upstream: Upstream) -> Sequence[dict[str, Any]]:
        resources = await upstream.resources(fresh=arguments.refresh)
        return [*resources, *await upstream.templates(fresh=arguments.refresh)]

    gathered = await gather(arguments, world, "resources/list", both)
    if arguments.json:
        print_json(world.terminal, [{"server": id, **item} for id, item in gathered.rows()])
        return gathered.code
    for upstream, items in gathered.found:
        templates = sum("uriTemplate" in item for item in items)
        world.say(f"server '{upstream.id}': {len(items) - templates} resources, {templates} templates")
    if rows := [_row(id, item) for id, item in gathered.rows()]:
        world.say("")
        print_table(world.terminal, ("SERVER", "ADDRESS", "TYPE", "WHAT IT IS"), rows)
    return gathered.code


def _row(id: str, item: dict[str, Any]) -> tuple[str, ...]:
    address = item.get("uri", item.get("uriTemplate", ""))
    said = first_sentence(item.get("description")) or str(item.get("title") or item.get("name") or "")
    return id, str(address), str(item.get("mimeType", "")), said
