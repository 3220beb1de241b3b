"""All tools of `crewx-tools`, for its own server and for the hub."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw
from msgspec.structs import replace

from dari.codetools.session import CodeSession
from dari.codetools.tools.agents import AgentTools
from dari.codetools.tools.check import CheckTools
from dari.codetools.tools.diff import DiffTools
from dari.codetools.tools.format import FormatTools
from dari.codetools.tools.lint import LintTools
from dari.codetools.tools.outline import OutlineTools
from dari.codetools.tools.refactor import RefactorTools
from dari.codetools.tools.search import CodeSearchTools
from dari.codetools.tools.symbols import SymbolTools
from dari.codetools.tools.testing import TestingTools
from dari.codetools.tools.undo import UndoTools
from dari.core.context import Context
from dari.core.tool import Tool, tools_of

FAMILIES = (
    SymbolTools,
    OutlineTools,
    DiffTools,
    CodeSearchTools,
    FormatTools,
    LintTools,
    TestingTools,
    CheckTools,
    RefactorTools,
    UndoTools,
    AgentTools,
)


def make_tools(session: CodeSession) -> Iterable[Tool]:
    """The tools of one client, named `crewx_tools_…`."""
    for family in FAMILIES:
        for tool in tools_of(family(session)):
            is_writer = session.snapshots is not None and not tool.annotations["readOnlyHint"]
            yield _after_snapshot(tool, session) if is_writer else tool


def _after_snapshot(tool: Tool, session: CodeSession) -> Tool:
    """What changed since the session began is known only if nothing is written before its snapshot is taken."""

    async def run(arguments: bytes | Raw, context: Context, /) -> object:
        work = tool.run(arguments, context)  # wrong arguments are an error before anything is looked at
        try:
            if session.snapshots is not None:
                await session.workspace(context)
                await session.snapshots.taken()
        except BaseException:
            work.close()
            raise
        return await work

    return replace(tool, run=run) if tool.is_async else tool
