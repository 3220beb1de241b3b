"""The tools as a person at a shell has them: the repository around the working folder, progress on stderr."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dari.codetools.roots import fixed_roots
from dari.codetools.session import CodeSession
from dari.codetools.tools.toolkit import make_tools
from dari.core.audit.spool import process_spool
from dari.core.context import ClientRequest, Context, Level
from dari.core.scopes import MCP_GRANT
from dari.core.tool import Tool
from dari.errors import Unavailable
from dari.process.children import Children
from dari.text.sanitize import escape_hidden
from dari.text.width import truncate

if TYPE_CHECKING:
    from dari.cli.kit.console import Console
    from dari.core.audit.writer import RecordWriter


@asynccontextmanager
async def open_tools(
    cwd: Path, environ: Mapping[str, str], console: Console
) -> AsyncIterator[tuple[dict[str, Tool], PersonContext, RecordWriter]]:
    """The tools by name, who calls them, and where calls are recorded. Names are seen from `cwd`."""
    spool = process_spool()
    try:
        async with Children() as children:
            session = CodeSession(fixed_roots([cwd, repository_of(cwd)]), environ, children)
            yield {tool.name: tool for tool in make_tools(session)}, PersonContext(console), spool
    finally:
        spool.close()


def repository_of(folder: Path) -> Path:
    """The top of the repository that holds the folder; the folder itself where there is none."""
    return next((above for above in (folder, *folder.parents) if os.path.lexists(above / ".git")), folder)


class PersonContext(Context):
    """A person: progress is a line on a terminal, and there is no client to ask."""

    def __init__(self, console: Console) -> None:
        self.grant = MCP_GRANT
        self.request_id = 1
        self._console = console
        self._state: dict[str, Any] = {}
        self._has_line = False

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.report(progress, total, message)

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if not self._console.stderr_is_tty:
            return
        count = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        line = escape_hidden(f"{count} {message or ''}", one_line=True)
        self._console.err(f"\r\x1b[K{truncate(line, max(20, self._console.columns - 1))}")
        self._has_line = True

    async def log(self, level: Level, data: Any, logger: str | None = None) -> None:
        return

    async def ask(self, questions: Mapping[str, ClientRequest]) -> dict[str, Any]:
        raise Unavailable("a command at a shell answers no questions", "use a client that supports it")

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return {}

    @property
    def client_name(self) -> str:
        return "cli"

    @property
    def state(self) -> dict[str, Any]:
        return self._state

    def close(self) -> None:
        """Remove the line of progress."""
        if self._has_line:
            self._console.err("\r\x1b[K")
            self._has_line = False
