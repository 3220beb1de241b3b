"""`call-tool`: one call of one tool, with JSON or with flags that its schema makes."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dari.cli.kit.parser import Command, Parser
from dari.cli.kit.table import format_size
from dari.cli.remote.arguments import add_params_option, read_arguments
from dari.cli.remote.context import (
    OK,
    CommandContext,
    add_common_options,
    add_server_options,
    select_upstream,
    split_address,
    to_usage_error,
)
from dari.cli.remote.input_schema import ObjectSchema
from dari.cli.remote.progress import Deadline, open_caller, trace_exchange
from dari.cli.remote.render import add_output_options, make_content_store, show_result
from dari.errors import DariError, Denied, InvalidInput, NeedsApproval, NotFound

if TYPE_CHECKING:
    from dari.bridge.upstream.tool_view import UpstreamTool
    from dari.bridge.upstream.upstream import Upstream

HELP = ("-h", "--help")
OWN_OPTIONS = (
    "server",
    "endpoint",
    "http",
    "stdio",
    "key",
    "header",
    "timeout",
    "params",
    "json",
    "raw",
    "output",
    "log",
    "config",
)
"""What `call-tool` takes for itself; a tool's argument of such a name stands after a lone `--`."""


def wants_help(rest: Sequence[str]) -> bool:
    """Whether a tool's words ask what the tool takes."""
    return list(rest[:1]) == [HELP[1]]


def split_words(words: Sequence[str], parser: argparse.ArgumentParser) -> tuple[list[str], list[str]]:
    """(own, the tool's): options that the parser knows and the first other word are own, until a lone `--`.

    `--help` before the first word is the command's, after it the tool's.
    """
    takes_value = {option: action.nargs != 0 for action in parser._actions for option in action.option_strings}
    own: list[str] = []
    rest: list[str] = []
    has_name = asks = False
    queue = list(words)
    while queue:
        word = queue.pop(0)
        option = word.partition("=")[0]
        if word == "--":
            if not has_name and queue:
                own.append(queue.pop(0))
            rest += queue
            break
        if word in HELP:
            if has_name:
                asks = True
            else:
                own.append(word)
        elif option.startswith("--") and option in takes_value:
            own.append(word)
            if takes_value[option] and "=" not in word and queue:
                own[-1] = f"{word}={queue.pop(0)}"  # a value that begins with a dash stays one
        elif not has_name:
            has_name = True
            own.append(word)
        else:
            rest.append(word)
    return own, [HELP[1], *rest] if asks else rest


_CALL = re.compile(r"(?P<address>[^\s()]+)\((?P<inside>.*)\)\s*", re.DOTALL)
_NAME = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*[:=]\s*")
_SINGLE = re.compile(r"'((?:[^'\\]|\\.)*)'")
_BARE = re.compile(r"[^,()\[\]{}\"'\s]+")
_NEXT = re.compile(r"\s*(,|$)\s*")
_SPACE = re.compile(r"\s*")
_EXAMPLE = """quote the whole call: 'server.tool(name: "value", count: 3)'"""


class CallExpression(NamedTuple):
    address: str
    """`server.tool`, `server/tool` or `tool`."""
    arguments: list[tuple[str | None, str]]
    """Name, or None for one that stands in its place; the value as a flag would have it."""


def parse_call(word: str) -> CallExpression | None:
    """The parts of a call; None for a word that is only a name. InvalidInput names the place that cannot be read."""
    if "(" not in word:
        return None
    found = _CALL.fullmatch(word)
    if found is None:
        raise InvalidInput(f"a call ends with ')', got {word[-30:]!r}", _EXAMPLE)
    return CallExpression(found["address"], _arguments(found["inside"]))


def to_flags(expression: CallExpression, shape: ObjectSchema, tool: str) -> list[str]:
    """The arguments as flags; those without a name get that of their place in the schema."""
    names = [each.name for each in shape.arguments]
    words: list[str] = []
    for at, (name, value) in enumerate(expression.arguments):
        if name is None:
            if at >= len(names):
                raise InvalidInput(
                    f"'{tool}' takes {len(names)} arguments, got {len(expression.arguments)}",
                    f"name them: {', '.join(names[:12]) or 'it takes none'}",
                )
            name = names[at]
        words.append(f"--{name}={value}")
    return words


def _arguments(inside: str) -> list[tuple[str | None, str]]:
    found: list[tuple[str | None, str]] = []
    at = _SPACE.match(inside, 0).end()  # type: ignore[union-attr]
    while at < len(inside):
        named = _NAME.match(inside, at)
        name = None
        if named is not None:
            name, at = named[1], named.end()
        value, at = _value(inside, at)
        found.append((name, value))
        following = _NEXT.match(inside, at)
        if following is None:
            raise _unreadable(inside, at, "a comma between two arguments")
        at = following.end()
    return found


def _value(inside: str, at: int) -> tuple[str, int]:
    single = _SINGLE.match(inside, at)
    if single is not None:
        return re.sub(r"\\(.)", r"\1", single[1]), single.end()
    try:
        value, end = _DECODER.raw_decode(inside, at)
    except (ValueError, RecursionError):
        pass
    else:
        if _NEXT.match(inside, end) is not None:  # 1.5.2 and trueish are words
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), end
    bare = _BARE.match(inside, at)
    if bare is None:
        raise _unreadable(inside, at, "a value")
    return bare[0], bare.end()


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _unreadable(inside: str, at: int, wanted: str) -> InvalidInput:
    return InvalidInput(f"{wanted} is needed at {inside[at : at + 20]!r}", _EXAMPLE)


def add_call_tool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tool", metavar="TOOL", help="the tool's name, SERVER/TOOL, SERVER.TOOL, or a call: 'SERVER.TOOL(name: value)'"
    )
    add_params_option(parser)
    add_server_options(parser)
    add_output_options(parser)


def split_call_tool(words: list[str]) -> tuple[list[str], list[str]]:
    return split_words(words, _own_parser())


async def run_call_tool(arguments: argparse.Namespace, context: CommandContext) -> int:
    expression = parse_call(arguments.tool)
    server, name = split_address(expression.address if expression else arguments.tool, arguments, context)
    upstream = _upstream(arguments, context, server, name)
    deadline = Deadline(arguments.timeout)
    tool = await find_tool(upstream, name, deadline, context)
    if wants_help(arguments.rest):
        from dari.cli.remote.describe import describe_tool

        describe_tool(upstream.id, tool.shown, context)
        return OK
    if expression is not None:
        arguments.rest = [
            *to_flags(expression, ObjectSchema(tool.shown.get("inputSchema")), tool.name),
            *arguments.rest,
        ]
    _warn_of_own_options(arguments, tool, context)
    given = await read_arguments(arguments, context, tool.name, tool.shown.get("inputSchema"))
    await tool.check(given)
    store = make_content_store(arguments.output, context, tool.name)
    label = f"{upstream.id}/{tool.name}"
    async with open_caller(context, upstream, label, deadline) as caller:
        with trace_exchange(context, upstream, "tools/call", tool.name) as trace:
            async with deadline.over(label):
                result = await upstream.call_tool(tool.name, given, caller, timeout_s=deadline.limit_s)
            trace.note(format_size(len(bytes(result)), byte="bytes"))
    return show_result(result, arguments, context, label, store, trace.ms)


async def find_tool(upstream: Upstream, name: str, deadline: Deadline, context: CommandContext) -> UpstreamTool:
    """The tool; unknown, held and filtered ones are usage errors: nothing was called."""
    is_new = upstream in context.temporary and not upstream.is_active  # what is remembered may be an older version's
    if is_new or all(tool.name != name for tool in upstream.known_tools() or ()):
        with trace_exchange(context, upstream, "tools/list"):
            async with deadline.over("tools/list"):
                await upstream.tools(fresh=True)  # what fails here is the server's or the network's fault
    try:
        return await upstream.tool(name)
    except NotFound as error:
        names = [tool.name for tool in upstream.known_tools() or ()]
        raise NotFound(f"server '{upstream.id}' has no tool '{name[:100]}'", _suggestion(name, names, error)) from None
    except (Denied, NeedsApproval) as error:
        raise to_usage_error(error) from None


def _suggestion(name: str, names: Sequence[str], error: DariError) -> str:
    from dari.bridge.search.fuzzy import nearest_names

    likely = nearest_names(name, names)
    return f"did you mean {' or '.join(likely)}?" if likely else error.hint


def _upstream(arguments: argparse.Namespace, context: CommandContext, server: str | None, name: str) -> Upstream:
    try:
        return select_upstream(arguments, context, server)
    except InvalidInput as error:
        if arguments.server or arguments.endpoint or arguments.stdio or server:
            raise
        owners = [each.id for each in context.view.upstreams() if _shows(each, name)]
        if not owners:
            raise
        addresses = " or ".join(f"{context.program} call-tool {owner}/{name}" for owner in owners)
        raise InvalidInput(error.message, addresses) from None


def _shows(upstream: Upstream, name: str) -> bool:
    return any(tool.name == name for tool in upstream.known_tools() or ())


def _warn_of_own_options(arguments: argparse.Namespace, tool: UpstreamTool, context: CommandContext) -> None:
    """Who types `--output x` for a tool that has an `output` should hear where it went."""
    for name in ObjectSchema(tool.shown.get("inputSchema")).properties:
        if name in OWN_OPTIONS and getattr(arguments, name, None):
            context.warn(
                f"--{name} was taken as an option of call-tool, and '{tool.name}' has an argument of that name",
                f"write the tool's own after a lone --: … -- --{name} VALUE",
            )


@cache
def _own_parser() -> Parser:
    parser = Parser(add_help=True)
    add_call_tool(parser)
    add_common_options(parser)
    return parser


_DESCRIPTION = """\
Call a tool. Its arguments are a JSON object (--params), or flags made from the tool's schema:
--name value, --name=value, --switch, --no-switch, a list by repeating the flag, --object.member value.
or name=value (of the schema's type), name:=JSON, name:value, or 'server.tool(name: "value", count: 3)'.
JSON and flags may both be given; flags win. They are checked against the schema before anything is sent.

The options below are this command's own, and win where a tool has an argument of the same name;
everything after a lone -- belongs to the tool. With a tool named, --help shows the tool's flags."""

COMMANDS = (
    Command(
        "call-tool",
        "Call a tool, with JSON or with flags made from its schema.",
        add_call_tool,
        run_call_tool,
        description=_DESCRIPTION,
        examples=(
            ("call-tool fs/read_file --path notes.txt --head 5", "flags from the schema; server and tool in one word"),
            ("call fs.read_file path=notes.txt head=5", "the same in short"),
            ("call echo text=hi --stdio 'python my_server.py'", "a server that runs as long as this call"),
            (
                'call-tool crewx_queryAgent --endpoint http://localhost:9001 --key "$CREWX_MCP_KEY" '
                """--params '{"agentId":"frontend","query":"lint rules"}' --raw""",
                "a server without a profile; the result as the server sent it, for a script",
            ),
            ("call-tool fs/write_file --params @call.json -- --output x", "JSON from a file; the tool's own --output"),
        ),
        split=split_call_tool,
    ),
    Command(
        "call",
        "Call a tool, with JSON or with flags made from its schema.",
        add_call_tool,
        run_call_tool,
        description=_DESCRIPTION,
        examples=(
            ("call fs.read_file path=notes.txt head=5", "arguments by name, of the types that the schema has"),
            ("""call 'fs.read_file(path: "my notes.txt", head: 5)'""", "the same as a program writes it"),
            ("call echo text=hi --stdio 'python my_server.py'", "a server that runs as long as this call"),
            ("call https://mcp.example.com/mcp.search query=proxies", "a server behind an address"),
        ),
        split=split_call_tool,
    ),
)
