"""`list-prompts`: the prompts that a server has ready."""

from __future__ import annotations

import argparse
from typing import Any

from dari.cli.remote.choosing import add_server
from dari.cli.remote.listing import gather
from dari.cli.remote.payloads import first_sentence, print_json, print_table
from dari.cli.remote.world import World

NAME = "list-prompts"
HELP = "List the prompts of a server, with their arguments."
EXAMPLES = (
    ("list-prompts --server docs", "names, and arguments; those with * are required"),
    ("list-prompts --all --json", "those of every server, for a script"),
)


def add(parser: argparse.ArgumentParser) -> None:
    add_server(parser, has_all=True)
    parser.add_argument("--refresh", action="store_true", help="ask the server, whatever the cache holds")
    parser.add_argument("--json", action="store_true", help="print the list alone, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    gathered = await gather(arguments, world, "prompts/list", lambda one: one.prompts(fresh=arguments.refresh))
    if arguments.json:
        print_json(world.terminal, [{"server": id, **item} for id, item in gathered.rows()])
        return gathered.code
    for upstream, items in gathered.found:
        world.say(f"server '{upstream.id}': {len(items)} prompt{'' if len(items) == 1 else 's'}")
    if rows := [_row(id, item) for id, item in gathered.rows()]:
        world.say("")
        print_table(world.terminal, ("SERVER/PROMPT", "ARGUMENTS", "WHAT IT IS FOR"), rows)
    return gathered.code


def _row(id: str, item: dict[str, Any]) -> tuple[str, ...]:
    names = [f"{each['name']}{'*' if each.get('required') else ''}" for each in arguments_of(item)]
    said = first_sentence(item.get("description")) or str(item.get("title") or "")
    return f"{id}/{item.get('name', '')}", ", ".join(names), said


def arguments_of(prompt: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments that a prompt lists, as far as they have a name."""
    listed = prompt.get("arguments")
    return (
        [each for each in listed if isinstance(each, dict) and isinstance(each.get("name"), str)]
        if isinstance(listed, list)
        else []
    )
