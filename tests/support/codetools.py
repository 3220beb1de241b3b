"""The code tools in memory, as a client has them: JSON in, JSON out, a session with folders and an undo store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from dari.codetools.edits.undo import UndoStore
from dari.codetools.session import CodeSession
from dari.codetools.tools.toolkit import make_tools
from dari.core.context import ClientRequest, Context, Level
from dari.core.scopes import MCP_GRANT
from dari.process.children import Children

DEADLINE_S = 40


class Caller(Context):
    """A client that only calls, and remembers what it was told on the way."""

    def __init__(self) -> None:
        self.grant = MCP_GRANT
        self.request_id = 1
        self.told: list[tuple[float, float | None, str | None]] = []

    @property
    def wants_progress(self) -> bool:
        return True

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.report(progress, total, message)

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.told.append((progress, total, message))

    async def log(self, level: Level, data: Any, logger: str | None = None) -> None: ...

    async def ask(self, questions: Mapping[str, ClientRequest]) -> dict[str, Any]:
        raise AssertionError("no tool here asks")

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return {}

    @property
    def state(self) -> dict[str, Any]:
        return {}


class CodeTools:
    """`await tools.call("search", pattern="x")` is the structured content of `crewx_tools_search`, through JSON."""

    def __init__(self, session: CodeSession) -> None:
        self.session = session
        self.caller = Caller()
        self._tools = {tool.name: tool for tool in make_tools(session)}

    @property
    def names(self) -> list[str]:
        return [name.removeprefix("crewx_tools_") for name in self._tools]

    async def call(self, short_name: str, **arguments: object) -> Any:
        tool = self._tools[f"crewx_tools_{short_name}"]
        async with asyncio.timeout(DEADLINE_S):
            result = tool.run(msgspec.json.encode(arguments), self.caller)
            return msgspec.json.decode(msgspec.json.encode(await result if tool.is_async else result))


@asynccontextmanager
async def code_tools(
    *roots: Path, undo: Path | None = None, environ: Mapping[str, str] | None = None, lasts: bool = False
) -> AsyncIterator[CodeTools]:
    """`undo` is a folder that outlives the session; without one it is beside the first root."""

    async def find_roots(context: Context) -> tuple[Path, ...]:
        return roots

    store = UndoStore(undo or roots[0].parent / "undo")
    async with Children() as children:
        session = CodeSession(find_roots, os.environ if environ is None else environ, children, store, lasts=lasts)
        yield CodeTools(session)
