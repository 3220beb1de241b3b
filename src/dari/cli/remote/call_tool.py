"""`call-tool`: one call of one tool, with JSON or with flags that its schema makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from dari.cli.remote.call_expressions import as_words, read_call
from dari.cli.remote.callers import calling
from dari.cli.remote.choosing import add_server, split_address, upstream_of
from dari.cli.remote.contents import saved
from dari.cli.remote.deadlines import Deadline
from dari.cli.remote.failures import OK, as_configuration
from dari.cli.remote.parameters import add_params, read_arguments
from dari.cli.remote.parser import Parser, add_common
from dari.cli.remote.payloads import size_text
from dari.cli.remote.results import add_output, show_result
from dari.cli.remote.schemas import Shape
from dari.cli.remote.tracing import traced
from dari.cli.remote.words import OWN_OPTIONS, split_words, wants_help
from dari.cli.remote.world import World
from dari.errors import DariError, Denied, InvalidInput, NeedsApproval, NotFound

if TYPE_CHECKING:
    from dari.bridge.upstream.exposure import RemoteTool
    from dari.bridge.upstream.upstream import Upstream

NAME = "call-tool"
HELP = "Call a tool, with JSON or with flags made from its schema."
DESCRIPTION = """\
Call a tool. Its arguments are a JSON object (--params), or flags made from the tool's schema:
--name value, --name=value, --switch, --no-switch, a list by repeating the flag, --object.member value.
or name=value (of the schema's type), name:=JSON, name:value, or 'server.tool(name: "value", count: 3)'.
JSON and flags may both be given; flags win. They are checked against the schema before anything is sent.

The options below are this command's own, and win where a tool has an argument of the same name;
everything after a lone -- belongs to the tool. With a tool named, --help shows the tool's flags."""
EXAMPLES = (
    ("call-tool fs/read_file --path notes.txt --head 5", "flags from the schema; server and tool in one word"),
    ("call fs.read_file path=notes.txt head=5", "the same in short"),
    ("call echo text=hi --stdio 'python my_server.py'", "a server that runs as long as this call"),
    (
        'call-tool crewx_queryAgent --endpoint http://localhost:9001 --key "$CREWX_MCP_KEY" '
        """--params '{"agentId":"frontend","query":"lint rules"}' --raw""",
        "a server without a profile; the result as the server sent it, for a script",
    ),
    ("call-tool fs/write_file --params @call.json -- --output x", "JSON from a file; the tool's own --output"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tool", metavar="TOOL", help="the tool's name, SERVER/TOOL, SERVER.TOOL, or a call: 'SERVER.TOOL(name: value)'"
    )
    add_params(parser)
    add_server(parser)
    add_output(parser)


def split(words: list[str]) -> tuple[list[str], list[str]]:
    return split_words(words, _own_parser())


async def run(arguments: argparse.Namespace, world: World) -> int:
    expression = read_call(arguments.tool)
    server, name = split_address(expression.address if expression else arguments.tool, arguments, world)
    upstream = _upstream(arguments, world, server, name)
    deadline = Deadline(arguments.timeout)
    tool = await find_tool(upstream, name, deadline, world)
    if wants_help(arguments.rest):
        from dari.cli.remote.describing import describe_tool

        describe_tool(upstream.id, tool.shown, world)
        return OK
    if expression is not None:
        arguments.rest = [*as_words(expression, Shape(tool.shown.get("inputSchema")), tool.name), *arguments.rest]
    _warn_of_own_options(arguments, tool, world)
    given = await read_arguments(arguments, world, tool.name, tool.shown.get("inputSchema"))
    await tool.check(given)
    label = f"{upstream.id}/{tool.name}"
    async with calling(world, upstream, label, deadline) as caller:
        with traced(world, upstream, "tools/call", tool.name) as trace:
            async with deadline.over(label):
                result = await upstream.call_tool(tool.name, given, caller, timeout_s=deadline.limit_s)
            trace.note(size_text(len(bytes(result))))
    return show_result(result, arguments, world, label, saved(arguments.output, world, tool.name), trace.ms)


async def find_tool(upstream: Upstream, name: str, deadline: Deadline, world: World) -> RemoteTool:
    """The tool; unknown, held and filtered ones are usage errors: nothing was called."""
    is_new = upstream in world.temporary and not upstream.is_active  # what is remembered may be an older version's
    if is_new or all(tool.name != name for tool in upstream.known_tools() or ()):
        with traced(world, upstream, "tools/list"):
            async with deadline.over("tools/list"):
                await upstream.tools(fresh=True)  # what fails here is the server's or the network's fault
    try:
        return await upstream.tool(name)
    except NotFound as error:
        names = [tool.name for tool in upstream.known_tools() or ()]
        raise NotFound(f"server '{upstream.id}' has no tool '{name[:100]}'", _suggestion(name, names, error)) from None
    except (Denied, NeedsApproval) as error:
        raise as_configuration(error) from None


def _suggestion(name: str, names: Sequence[str], error: DariError) -> str:
    from dari.bridge.search.fuzzy import nearest_names

    likely = nearest_names(name, names)
    return f"did you mean {' or '.join(likely)}?" if likely else error.hint


def _upstream(arguments: argparse.Namespace, world: World, server: str | None, name: str) -> Upstream:
    try:
        return upstream_of(arguments, world, server)
    except InvalidInput as error:
        if arguments.server or arguments.endpoint or arguments.stdio or server:
            raise
        owners = [each.id for each in world.view.upstreams() if _shows(each, name)]
        if not owners:
            raise
        addresses = " or ".join(f"{world.program} call-tool {owner}/{name}" for owner in owners)
        raise InvalidInput(error.message, addresses) from None


def _shows(upstream: Upstream, name: str) -> bool:
    return any(tool.name == name for tool in upstream.known_tools() or ())


def _warn_of_own_options(arguments: argparse.Namespace, tool: RemoteTool, world: World) -> None:
    """Who types `--output x` for a tool that has an `output` should hear where it went."""
    for name in Shape(tool.shown.get("inputSchema")).properties:
        if name in OWN_OPTIONS and getattr(arguments, name, None):
            world.warn(
                f"--{name} was taken as an option of call-tool, and '{tool.name}' has an argument of that name",
                f"write the tool's own after a lone --: … -- --{name} VALUE",
            )


@cache
def _own_parser() -> Parser:
    parser = Parser(add_help=True)
    add(parser)
    add_common(parser)
    return parser
