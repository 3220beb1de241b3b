"""`crewx_tools_lint`: what the project's linters say, and their fixes."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from dari.codetools.edits.change import FileEdit, fit_edits
from dari.codetools.edits.write import write_changes
from dari.codetools.engines.rewrite import FileError
from dari.codetools.engines.select import select_files
from dari.codetools.engines.usage import EngineUse
from dari.codetools.lint.diagnostic import Diagnostic, LintSummary, summarize
from dari.codetools.lint.rules import make_filter
from dari.codetools.lint.run import FixLevel, plan_lint
from dari.codetools.paging import decode_cursor, encode_cursor
from dari.codetools.session import CodeSession
from dari.core.context import Context
from dari.core.scopes import CONTROL
from dari.core.tool import tool

TIMEOUT_S = 600.0
MAX_EDIT_TOKENS = 4000
MAX_ERRORS = 100


class LintRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Names as the linters have them: F401, E, suspicious/noDebugger, no-var, SC2086."""

    select: list[str] = []
    ignore: list[str] = []


class LintResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    diagnostics: list[Diagnostic]
    """With fix: those that remain."""
    summary: LintSummary
    engines: list[EngineUse]
    errors: list[FileError] = []
    """Files and engines that could not be run."""
    edits: list[FileEdit] = []
    applied: bool | None = None
    hash: str = ""
    """Of a dry run: what expectHash takes."""
    undo_token: str = ""
    more: str = ""
    cursor: str = ""
    """For the next diagnostics."""


class LintTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    # Linters of a project load its plugins: not a tool of scope read, even without a fix.
    @tool(scope=CONTROL, camel_case=True, destructive=True, timeout_s=TIMEOUT_S, output="code")
    async def lint(
        self,
        context: Context,
        paths: Annotated[list[str], Meta(description="files, folders and globs such as src/**/*.ts", min_length=1)],
        fix: Annotated[
            FixLevel,
            Meta(description="none: only look; safe: fixes that keep the meaning; unsafe: also those that may not"),
        ] = "none",
        rules: Annotated[
            LintRules | None, Meta(description="only these rules, or all of the project's but these")
        ] = None,
        max_diagnostics: Annotated[int, Meta(description="diagnostics in one result", ge=1, le=2000)] = 100,
        cursor: Annotated[str | None, Meta(description="cursor of the last result, for the next diagnostics")] = None,
        dry_run: Annotated[
            bool, Meta(description="true: show what a fix changes; false: write it and return counts")
        ] = True,
        expect_hash: Annotated[
            str | None, Meta(description="hash of an earlier dryRun; refuse if these edits are not those")
        ] = None,
        include_ignored: Annotated[bool, Meta(description="also files in folders and globs that git ignores")] = False,
        root: Annotated[str | None, Meta(description="folder in the workspace that paths start from")] = None,
    ) -> LintResult:
        """Run the project's linters; returns {diagnostics, summary}, with fix {edits, applied, hash, undoToken}."""
        workspace = await self._session.workspace(context, root)

        wanted = rules or LintRules()
        selection = await asyncio.to_thread(
            select_files, workspace, paths, lambda language: language.lint, include_ignored=include_ignored
        )
        plan = await plan_lint(
            self._session,
            workspace,
            selection,
            fix=fix,
            rules=make_filter(wanted.select, wanted.ignore),
            tell=context.report,
        )
        state = _fingerprint(plan.diagnostics)  # a page of other diagnostics would have gaps
        start = decode_cursor(cursor, state)
        page = plan.diagnostics[start : start + max_diagnostics]
        end = start + len(page)
        result = LintResult(
            page,
            summarize(plan.diagnostics, plan.fixed),
            plan.engines,
            plan.errors[:MAX_ERRORS],
            cursor=encode_cursor(end, state) if end < len(plan.diagnostics) else "",
        )
        if fix == "none":
            return result
        written = await write_changes(
            plan.changes,
            workspace,
            self._session.undo,
            "lint",
            dry_run=dry_run,
            expect_hash=expect_hash,
            max_diff_chars=MAX_EDIT_TOKENS * 4,
        )
        edits, left_out = fit_edits(written.edits, MAX_EDIT_TOKENS)
        return msgspec.structs.replace(
            result,
            edits=edits,
            applied=written.applied,
            hash=written.plan_hash,
            undo_token=written.undo_token,
            more=f"{left_out} more edited files" if left_out else "",
        )


def _fingerprint(found: list[Diagnostic]) -> str:
    return hashlib.sha256(msgspec.json.encode(found)).hexdigest()[:8]
