"""`crewx_tools_format`: format files with the project's own formatter."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from dari.codetools.edits.change import FileEdit, fit_edits
from dari.codetools.edits.write import write_changes
from dari.codetools.engines.rewrite import FileError
from dari.codetools.engines.select import select_files
from dari.codetools.engines.usage import EngineUse
from dari.codetools.format.formatters import LineRange
from dari.codetools.format.run import Style, plan_format
from dari.codetools.session import CodeSession
from dari.core.context import Context
from dari.core.scopes import CONTROL
from dari.core.tool import tool

TIMEOUT_S = 600.0
MAX_ERRORS = 100


class FormatResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    changed: list[FileEdit]
    unchanged: int
    """Files that have the format already."""
    applied: bool
    engines: list[EngineUse]
    hash: str = ""
    """Of a dry run: what expectHash takes."""
    errors: list[FileError] = []
    undo_token: str = ""
    more: str = ""
    """How many entries were left out."""


class FormatTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    # A project's formatter and its plugins are code of the project: not a tool of scope read, even with dryRun.
    @tool(scope=CONTROL, camel_case=True, destructive=True, timeout_s=TIMEOUT_S, output="code")
    async def format(
        self,
        context: Context,
        paths: Annotated[
            list[str],
            Meta(
                description="files, folders and globs such as src/**/*.ts; links are followed only inside", min_length=1
            ),
        ],
        style: Annotated[
            Style, Meta(description="project: the project's formatter and settings; default: the engine's own style")
        ] = "project",
        range: Annotated[
            LineRange | None, Meta(description="only these lines (from 1, both included) of one file")
        ] = None,
        dry_run: Annotated[bool, Meta(description="true: show the diff; false: write it and return counts")] = True,
        expect_hash: Annotated[
            str | None, Meta(description="hash of an earlier dryRun; refuse if this diff is not that one")
        ] = None,
        include_ignored: Annotated[bool, Meta(description="also files in folders and globs that git ignores")] = False,
        max_tokens: Annotated[int, Meta(description="size of the diffs in the result", ge=100, le=100_000)] = 4000,
        root: Annotated[str | None, Meta(description="folder in the workspace that paths start from")] = None,
    ) -> FormatResult:
        """Format files with the project's formatter; returns {changed, unchanged, errors, applied, hash, undoToken}."""
        workspace = await self._session.workspace(context, root)

        selection = await asyncio.to_thread(
            select_files, workspace, paths, lambda language: language.format, include_ignored=include_ignored
        )
        plan = await plan_format(
            self._session,
            workspace,
            selection,
            style=style,
            line_range=range,
            tell=context.report,
        )
        written = await write_changes(
            plan.changes,
            workspace,
            self._session.undo,
            "format",
            dry_run=dry_run,
            expect_hash=expect_hash,
            max_diff_chars=max_tokens * 4,
        )
        changed, left_out = fit_edits(written.edits, max_tokens)
        notes = [f"{left_out} more changed files" if left_out else ""]
        notes.append(f"{len(plan.errors) - MAX_ERRORS} more errors" if len(plan.errors) > MAX_ERRORS else "")
        return FormatResult(
            changed,
            plan.unchanged,
            written.applied,
            plan.engines,
            written.plan_hash,
            plan.errors[:MAX_ERRORS],
            written.undo_token,
            ", ".join(note for note in notes if note),
        )
