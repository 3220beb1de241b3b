"""`crewx mcp call_tool`: a tool that is built in, run in this process (design 001 §7)."""

from __future__ import annotations

import argparse
import time

from dari.cli.remote.built_in import SERVER, find_own, run_own
from dari.cli.remote.contents import saved
from dari.cli.remote.describing import describe_tool
from dari.cli.remote.failures import OK
from dari.cli.remote.parameters import add_params, read_arguments
from dari.cli.remote.parser import Parser, add_common, milliseconds
from dari.cli.remote.results import add_output, show_result
from dari.cli.remote.tracing import duration
from dari.cli.remote.words import split_words, wants_help
from dari.cli.remote.world import World

NAME = "call_tool"
HELP = "Call a tool that is built in, with JSON or with flags made from its schema."
DESCRIPTION = """\
Call a tool that is built in. Its arguments are a JSON object (--params), or flags made from its schema;
everything after a lone -- belongs to the tool. The prefix of a name may be left out where only one tool fits."""
EXAMPLES = (
    ("call_tool dari_doctor", "is everything in order?"),
    ('call_tool crab_traffic_search --params \'{"host": "example.com"}\' --json', "the result alone"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="a name that list_tools shows")
    add_params(parser)
    parser.add_argument("--timeout", metavar="MS", type=milliseconds, help="give up after this time")
    add_output(parser)


def split(words: list[str]) -> tuple[list[str], list[str]]:
    parser = Parser()
    add(parser)
    add_common(parser)
    return split_words(words, parser)


async def run(arguments: argparse.Namespace, world: World) -> int:
    tool = find_own(arguments.tool)
    if wants_help(arguments.rest):
        describe_tool(SERVER, tool.listing(), world, "call_tool")
        return OK
    given = await read_arguments(arguments, world, tool.name, tool.input_schema)
    began = time.perf_counter()
    world.log(f"→ {tool.name} · in this process")
    result = await run_own(tool, given, world, None if arguments.timeout is None else arguments.timeout / 1000)
    ms = (time.perf_counter() - began) * 1000
    world.log(f"← {tool.name} · {duration(ms)}")
    return show_result(result, arguments, world, f"{SERVER}/{tool.name}", saved(arguments.output, world, tool.name), ms)
