"""`crewx_tools_outline`: what files define, without their bodies."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Annotated

from msgspec import Meta, Struct

from dari.codetools.session import CodeSession
from dari.codetools.symbols.outline import FileOutline, Reading, fit_outline
from dari.codetools.symbols.source import NotParsed, ask_about, parser_version
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.core.context import Context
from dari.core.tool import tool
from dari.errors import InvalidInput
from dari.syntax.languages import has_language

MAX_FILES = 400
"""More would not fit into any result."""


class OutlineResult(Struct, frozen=True, omit_defaults=True):
    files: list[FileOutline]
    engine: str
    more: str = ""
    """What the budget left out."""


class OutlineTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(camel_case=True, output="code")
    async def outline(
        self,
        context: Context,
        path: Annotated[str | None, Meta(description="a file, a folder, or a glob such as src/**/*.py")] = None,
        paths: Annotated[list[str], Meta(description="several of them")] = [],  # noqa: B006
        depth: Annotated[
            int, Meta(description="levels of nesting: 1 is the top of a file, 2 adds methods and fields", ge=1, le=20)
        ] = 2,
        max_tokens: Annotated[int, Meta(description="size of the result", ge=100, le=100_000)] = 4000,
        root: Annotated[str | None, Meta(description="folder that paths are relative to")] = None,
    ) -> OutlineResult:
        """List the definitions of files with kind, lines, signature and first doc line; returns {files, more}."""
        if path is None and not paths:
            raise InvalidInput("path or paths must name a file, got neither", "name a file, a folder or a glob")
        workspace = await self._session.workspace(context, root)
        named = [*([path] if path is not None else []), *paths]
        found = await asyncio.to_thread(_choose, workspace, named)
        readings = [await self._read(workspace, one) for one in found[:MAX_FILES]]
        files, more = fit_outline(readings, depth, max_tokens)
        if len(found) > MAX_FILES:
            more = f"only the first {MAX_FILES} files were read; {more}".rstrip("; ")
        return OutlineResult(files, parser_version(), more)

    async def _read(self, workspace: Workspace, path: WorkspacePath) -> Reading:
        shown = workspace.show(path)
        try:
            language, answer = await ask_about(self._session, workspace, path)
        except NotParsed as error:
            return Reading(shown, problem=str(error))
        return Reading(shown, language, answer)


def _choose(workspace: Workspace, patterns: list[str]) -> list[WorkspacePath]:
    """A file that is named itself is taken whatever it is; of folders and globs those in a known language."""
    named = {workspace.locate(pattern) for pattern in patterns}
    known = (
        one
        for one in workspace.files(patterns)
        if one in named or ("." in one.names[-1][1:] and has_language(one.names[-1]))
    )
    return list(islice(known, MAX_FILES + 1))
