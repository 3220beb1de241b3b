"""The tools that are part of Dari, run in this process: no server, no session, the same results as over MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Raw

from dari.bridge.search.fuzzy import nearest_names
from dari.cli.remote.forms import answer
from dari.cli.remote.meter import Meter
from dari.cli.remote.world import World
from dari.core.context import ClientRequest, Context, Elicited, Level, Progress
from dari.core.scopes import MCP_GRANT
from dari.core.tool import Tool
from dari.errors import DariError, InvalidInput, NotFound, TimedOut
from dari.mcp.error_mapping import error_result, to_dari_error
from dari.mcp.handlers.tools import render, render_structured
from dari.rpc.codec import encode

SERVER = "dari"
_made: WeakKeyDictionary[asyncio.AbstractEventLoop, Mapping[str, Tool]] = WeakKeyDictionary()


def own_tools() -> Mapping[str, Tool]:
    """By name. Made once per loop: the proxy's tools keep a connection to their daemon."""
    loop = asyncio.get_running_loop()
    if loop not in _made:
        from dari.app import build
        from dari.settings import ServeSettings

        _made[loop] = build(ServeSettings()).registry.tools
    return _made[loop]


def find_own(name: str) -> Tool:
    """By its name, with the server in front (`dari/…`), or without the toolkit's prefix where only one tool fits."""
    tools = own_tools()
    plain = name.removeprefix(f"{SERVER}/")
    if plain in tools:
        return tools[plain]
    alike = [tool for known, tool in tools.items() if known.partition("_")[2] == plain]
    if len(alike) == 1:
        return alike[0]
    likely = [tool.name for tool in alike] or nearest_names(plain, tools)
    hint = f"did you mean {' or '.join(likely)}?" if likely else "see: crewx mcp list_tools"
    raise NotFound(f"there is no built-in tool '{name[:100]}'", hint)


async def run_own(tool: Tool, arguments: bytes, world: World, timeout_s: float | None) -> Raw:
    """A `CallToolResult`; a failure of the tool is one too. InvalidInput when the arguments are wrong."""
    limit_s = tool.timeout_s if timeout_s is None else timeout_s
    context = _ShellContext(world, tool.name)
    try:
        value = tool.run(arguments, context)
        if tool.is_async:
            async with asyncio.timeout(limit_s):
                value = await value
    except InvalidInput:
        raise
    except TimeoutError as error:
        raise TimedOut(f"'{tool.name}' was not done in {limit_s:g} s", "allow more: --timeout MS") from error
    except (DariError, Exception) as error:
        return Raw(error_result(to_dari_error(error, f"{tool.name} failed")))
    finally:
        context.close()
    return Raw((render if tool.output_schema is None else render_structured)(value))


class _ShellContext(Context):
    """The person at the shell as the caller of a tool of ours: everything a local user may do."""

    def __init__(self, world: World, name: str) -> None:
        self.grant = MCP_GRANT
        self.request_id = 1
        self._world = world
        self._meter = Meter(world.terminal, name)
        self._state: dict[str, Any] = {}

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.report(progress, total, message)

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        given: dict[str, Any] = {"total": total, "message": message}
        self._meter.show(Progress(1, progress, **{key: value for key, value in given.items() if value is not None}))

    async def log(self, level: Level, data: Any, logger: str | None = None) -> None:
        self._meter.clear()
        self._world.log(f"{SERVER} [{level}] {data if isinstance(data, str) else encode(data).decode()}")

    async def ask(self, questions: Mapping[str, ClientRequest]) -> dict[str, Any]:
        self._meter.clear()
        return {key: await self._answer(question) for key, question in questions.items()}

    async def _answer(self, question: ClientRequest) -> Any:
        told = await answer(question.method, Raw(encode(question.params())), self._world, SERVER)
        is_form = question.method == "elicitation/create"
        return Elicited(told["action"], told.get("content")) if is_form else told

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
