"""The tools that are part of Dari, run in this process: no server, no session, the same results as over MCP."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Raw

from dari.bridge.search.fuzzy import nearest_names
from dari.cli.kit.console import print_json
from dari.cli.kit.parser import Command, Parser, milliseconds
from dari.cli.kit.table import first_sentence, format_duration, print_table
from dari.cli.kit.tool_call import call_tool
from dari.cli.remote.arguments import add_params_option, read_arguments
from dari.cli.remote.call import split_words, wants_help
from dari.cli.remote.context import OK, CommandContext, add_common_options
from dari.cli.remote.describe import describe_tool
from dari.cli.remote.progress import ProgressLine, answer_server_request
from dari.cli.remote.render import add_output_options, make_content_store, show_result
from dari.core.context import ClientRequest, Context, Elicited, Level, Progress
from dari.core.scopes import MCP_GRANT
from dari.core.tool import Tool
from dari.errors import NotFound
from dari.rpc.codec import encode

SERVER = "dari"
_made: WeakKeyDictionary[asyncio.AbstractEventLoop, Mapping[str, Tool]] = WeakKeyDictionary()


def built_in_tools() -> Mapping[str, Tool]:
    """By name. Made once per loop: the proxy's tools keep a connection to their daemon."""
    loop = asyncio.get_running_loop()
    if loop not in _made:
        from dari.app import build
        from dari.settings import ServeSettings

        tools = build(ServeSettings()).registry.tools
        # Design 001 §16.2: the code tools are a server of their own, `crewx mcp remote … --server crewx-tools`.
        _made[loop] = {name: tool for name, tool in tools.items() if tool.part != "crewx_tools"}
    return _made[loop]


def find_built_in(name: str) -> Tool:
    """By its name, with the server in front (`dari/…`), or without the toolkit's prefix where only one tool fits."""
    tools = built_in_tools()
    plain = name.removeprefix(f"{SERVER}/")
    if plain in tools:
        return tools[plain]
    alike = [tool for known, tool in tools.items() if known.partition("_")[2] == plain]
    if len(alike) == 1:
        return alike[0]
    likely = [tool.name for tool in alike] or nearest_names(plain, tools)
    hint = f"did you mean {' or '.join(likely)}?" if likely else "see: crewx mcp list_tools"
    raise NotFound(f"unknown built-in tool '{name[:100]}'", hint)


async def run_built_in(tool: Tool, arguments: bytes, context: CommandContext, timeout_s: float | None) -> Raw:
    """A `CallToolResult`; a failure of the tool is one too. InvalidInput when the arguments are wrong."""
    tool_context = _ShellContext(context, tool.name)
    try:
        return Raw(await call_tool(tool, arguments, tool_context, context.bridge.audit, timeout_s))
    finally:
        tool_context.close()


class _ShellContext(Context):
    """The person at the shell as the caller of a tool of ours: everything a local user may do."""

    def __init__(self, context: CommandContext, name: str) -> None:
        self.grant = MCP_GRANT
        self.request_id = 1
        self._context = context
        self._meter = ProgressLine(context.console, name)
        self._state: dict[str, Any] = {}

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.report(progress, total, message)

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        given: dict[str, Any] = {"total": total, "message": message}
        self._meter.show(Progress(1, progress, **{key: value for key, value in given.items() if value is not None}))

    async def log(self, level: Level, data: Any, logger: str | None = None) -> None:
        self._meter.clear()
        self._context.log(f"{SERVER} [{level}] {data if isinstance(data, str) else encode(data).decode()}")

    async def ask(self, questions: Mapping[str, ClientRequest]) -> dict[str, Any]:
        self._meter.clear()
        return {key: await self._answer(question) for key, question in questions.items()}

    async def _answer(self, question: ClientRequest) -> Any:
        reply = await answer_server_request(question.method, Raw(encode(question.params())), self._context, SERVER)
        is_form = question.method == "elicitation/create"
        return Elicited(reply["action"], reply.get("content")) if is_form else reply

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return {"elicitation": {"form": {}, "url": {}}}

    @property
    def wants_progress(self) -> bool:
        return True

    @property
    def client_name(self) -> str:
        return "cli"

    @property
    def state(self) -> dict[str, Any]:
        return self._state

    def close(self) -> None:
        self._meter.clear()


def add_call_built_in(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="a name that list_tools shows")
    add_params_option(parser)
    parser.add_argument("--timeout", metavar="MS", type=milliseconds, help="give up after this time")
    add_output_options(parser)


def split_call_built_in(words: list[str]) -> tuple[list[str], list[str]]:
    parser = Parser()
    add_call_built_in(parser)
    add_common_options(parser)
    return split_words(words, parser)


async def run_call_built_in(arguments: argparse.Namespace, context: CommandContext) -> int:
    tool = find_built_in(arguments.tool)
    if wants_help(arguments.rest):
        describe_tool(SERVER, tool.listing(), context, "call_tool")
        return OK
    given = await read_arguments(arguments, context, tool.name, tool.input_schema)
    store = make_content_store(arguments.output, context, tool.name)
    began = time.perf_counter()
    context.log(f"→ {tool.name} · in this process")
    result = await run_built_in(tool, given, context, None if arguments.timeout is None else arguments.timeout / 1000)
    ms = (time.perf_counter() - began) * 1000
    context.log(f"← {tool.name} · {format_duration(ms)}")
    return show_result(result, arguments, context, f"{SERVER}/{tool.name}", store, ms)


def add_list_built_in(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list alone: an array of tools with their server")


async def run_list_built_in(arguments: argparse.Namespace, context: CommandContext) -> int:
    tools = built_in_tools().values()
    if arguments.json:
        print_json(context.console, [{"server": SERVER, **tool.listing()} for tool in tools])
        return OK
    context.say(f"server '{SERVER}' (built in): {len(tools)} tools\n")
    rows = [(f"{SERVER}/{tool.name}", first_sentence(tool.description)) for tool in tools]
    print_table(context.console, ("SERVER/TOOL", "WHAT IT DOES"), rows)
    return OK


COMMANDS = (
    Command(
        "call_tool",
        "Call a tool that is built in, with JSON or with flags made from its schema.",
        add_call_built_in,
        run_call_built_in,
        description="""\
Call a tool that is built in. Its arguments are a JSON object (--params), or flags made from its schema;
everything after a lone -- belongs to the tool. The prefix of a name may be left out where only one tool fits.""",
        examples=(
            ("call_tool dari_doctor", "is everything in order?"),
            ('call_tool crab_traffic_search --params \'{"host": "example.com"}\' --json', "the result alone"),
        ),
        split=split_call_built_in,
    ),
    Command(
        "list_tools",
        "List the tools that are built in. Other servers: crewx mcp remote list-tools",
        add_list_built_in,
        run_list_built_in,
        examples=(
            ("list_tools", "names and what they do"),
            ("list_tools --json", "with schemas, for a script"),
        ),
    ),
)
