"""`read-resource`: what stands behind an address."""

from __future__ import annotations

import argparse

from msgspec import Raw

from dari.cli.remote.callers import calling
from dari.cli.remote.choosing import add_server, upstream_of
from dari.cli.remote.contents import contents_text, saved, text_of
from dari.cli.remote.deadlines import Deadline
from dari.cli.remote.failures import OK
from dari.cli.remote.payloads import pretty, print_json, print_raw, size_text
from dari.cli.remote.results import add_output
from dari.cli.remote.tracing import traced
from dari.cli.remote.world import World
from dari.errors import DariError
from dari.mcp.client.decode import read
from dari.mcp.client.results import ReadResult
from dari.rpc.codec import decode_any

NAME = "read-resource"
HELP = "Read a resource: text is printed, binary contents are described or saved."
EXAMPLES = (
    ("read-resource file:///notes.txt --server docs", "text on stdout"),
    ("read-resource img://logo --server docs --output .", "binary contents into a file"),
    ("read-resource file:///notes.txt --server docs --json", "the result alone; binary contents stay base64"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("uri", metavar="URI", help="an address that list-resources shows, or one that fits a template")
    add_server(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, world: World) -> int:
    upstream = upstream_of(arguments, world)
    deadline = Deadline(arguments.timeout)
    async with calling(world, upstream, arguments.uri, deadline) as caller:
        with traced(world, upstream, "resources/read", arguments.uri) as trace:
            async with deadline.over("resources/read"):
                result = await upstream.read_resource(arguments.uri, caller, timeout_s=deadline.limit_s)
            trace.note(size_text(len(bytes(result))))
    texts = _texts(result, arguments, world)
    if arguments.raw:
        print_raw(world.terminal, result)
    elif arguments.json:
        print_json(world.terminal, result)
    else:
        for text in texts:
            world.say(text)
    return OK


def _texts(result: Raw, arguments: argparse.Namespace, world: World) -> list[str]:
    if (arguments.json or arguments.raw) and not arguments.output:
        return []
    try:
        contents = read(result, ReadResult, "resources/read result").contents
    except DariError:
        return [pretty(decode_any(result))]
    store = saved(arguments.output, world, arguments.uri.rpartition("/")[2] or arguments.uri)
    # One text is printed as it is, so that it can be piped on.
    if len(contents) == 1 and isinstance(contents[0].text, str):
        return [text_of(contents[0].text)]
    return [contents_text(each, store) for each in contents] or ["(nothing)"]
