"""The MCP server of `crewx-tools serve` (design 001 §15): the code tools and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.codetools.session import CodeSession
    from dari.core.audit.writer import RecordWriter
    from dari.core.tool import Tool

INSTRUCTIONS = (
    "Tools for work in a repository. crewx_tools_search finds text and syntax; crewx_tools_symbols finds definitions "
    "and uses of a name, crewx_tools_outline shows a file's. crewx_tools_check says what is wrong with your change and "
    "what to do first. Writers (format, lint with fix, refactor) show a diff first: dryRun is true unless you say "
    "otherwise; send its hash as expectHash to write exactly that, and undoToken to crewx_tools_undo to take it back."
)


def build_server(
    make_session: Callable[[], CodeSession],
    call_log: RecordWriter | None = None,
    on_exit: Callable[[], None] | None = None,
) -> Server:
    """The tools are made when they are first asked for: a handshake does not wait for their imports."""
    registry = Registry()
    registry.call_log = None if call_log is None else lambda: call_log

    def make() -> Iterable[Tool]:
        from dari.codetools.tools.toolkit import make_tools

        return make_tools(make_session())

    registry.defer(make)
    info = Info(name="crewxtools", version=VERSION, title="CrewX tools")
    return Server(registry, info, instructions=INSTRUCTIONS, on_exit=on_exit)
