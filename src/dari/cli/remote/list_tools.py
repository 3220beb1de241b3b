"""`list-tools`: what can be called, with the server of each tool."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dari.cli.remote.choosing import add_server
from dari.cli.remote.listing import Gathered, gather
from dari.cli.remote.payloads import first_sentence, print_json, print_table
from dari.cli.remote.world import World
from dari.errors import InvalidInput

if TYPE_CHECKING:
    from dari.bridge.upstream.exposure import RemoteTool
    from dari.bridge.upstream.upstream import Upstream

NAME = "list-tools"
HELP = "List the tools of a server, or of all, with the server of each."
DESCRIPTION = """\
List the tools of a server. Without --server it is the default profile; --all lists every server at once:
one that does not answer is told on stderr, does not delay the others, and makes the exit code 2."""
EXAMPLES = (
    ("list-tools --server fs", "the tools of one server"),
    ('list-tools --endpoint http://127.0.0.1:9001 --key "$CREWX_MCP_KEY"', "a server without a profile"),
    ("list-tools --all --json", "every tool of every server with its schema, for a script"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="SERVER", help="a profile by its id, or an address (default: --server)"
    )
    add_server(parser, has_all=True)
    parser.add_argument("--refresh", action="store_true", help="ask the server, whatever the cache holds")
    parser.add_argument("--json", action="store_true", help="print the list alone: an array of tools with their server")


async def run(arguments: argparse.Namespace, world: World) -> int:
    _take_word(arguments)
    is_fresh = arguments.refresh or arguments.stdio is not None

    def source(upstream: Upstream) -> str:
        is_known = upstream.known_tools() is not None
        return ", from the cache" if is_known and not is_fresh else ""

    gathered = await gather(arguments, world, "tools/list", lambda one: one.tools(fresh=is_fresh), source)
    if arguments.json:
        print_json(world.terminal, [{"server": id, **tool.shown} for id, tool in gathered.rows()])
    else:
        _show(gathered, world)
    for upstream, _ in gathered.found:
        _tell_held(upstream, world)
    return gathered.code


def _take_word(arguments: argparse.Namespace) -> None:
    if not arguments.id:
        return
    if arguments.server or arguments.endpoint or arguments.stdio or arguments.all:
        raise InvalidInput(f"'{arguments.id[:80]}' and an option name two servers", "give one of them")
    if arguments.id.startswith(("http://", "https://")):
        arguments.endpoint = arguments.id
    else:
        arguments.server = arguments.id


def _tell_held(upstream: Upstream, world: World) -> None:
    held = upstream.status().held
    if held:
        world.warn(
            f"server '{upstream.id}' holds back {held} item{'s' if held > 1 else ''}: new, or not what they were",
            f"look at the difference, then agree: dari remote approve {upstream.target.pin_name}",
        )


def _show(gathered: Gathered[RemoteTool], world: World) -> None:
    for upstream, tools in gathered.found:
        count = f"{len(tools)} tool{'' if len(tools) == 1 else 's'}"
        world.say(f"server '{upstream.id}' ({upstream.profile.kind}): {count}")
    if rows := [(f"{id}/{tool.name}", _line(tool.shown)) for id, tool in gathered.rows()]:
        world.say("")
        print_table(world.terminal, ("SERVER/TOOL", "WHAT IT DOES"), rows)


def _line(shown: dict[str, Any]) -> str:
    return first_sentence(shown.get("description")) or first_sentence(shown.get("title"))
