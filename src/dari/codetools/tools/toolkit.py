"""All tools of `crewx-tools`, for its own server and for the hub."""

from __future__ import annotations

from collections.abc import Iterable

from dari.codetools.session import CodeSession
from dari.codetools.tools.agents import AgentTools
from dari.codetools.tools.check import CheckTools
from dari.codetools.tools.format import FormatTools
from dari.codetools.tools.lint import LintTools
from dari.codetools.tools.outline import OutlineTools
from dari.codetools.tools.refactor import RefactorTools
from dari.codetools.tools.search import SearchTools
from dari.codetools.tools.symbols import SymbolTools
from dari.codetools.tools.testing import TestingTools
from dari.codetools.tools.undo import UndoTools
from dari.core.tool import Tool, tools_of

FAMILIES = (
    SymbolTools,
    OutlineTools,
    SearchTools,
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
        yield from tools_of(family(session))
