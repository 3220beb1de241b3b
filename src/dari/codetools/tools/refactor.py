"""`crewx_tools_refactor`: rename, move, rewrite, sort imports."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from dari.codetools.edits.change import FileChange, FileEdit, fit_edits
from dari.codetools.edits.write import write_changes
from dari.codetools.refactor.jobs import Job, Op, RewriteRule, Symbol
from dari.codetools.refactor.plan import make_changes
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace
from dari.core.context import Context
from dari.core.scopes import CONTROL
from dari.core.tool import tool
from dari.errors import InvalidInput

TIMEOUT_S = 100.0
MAX_RULES = 50


class RefactorResult(Struct, frozen=True, omit_defaults=True, rename="camel"):
    edits: list[FileEdit]
    applied: bool
    hash: str = ""
    """Of a dry run: what expectHash takes."""
    undo_token: str = ""
    engine: str = ""
    notes: list[str] = []
    """What was left alone, and why."""
    more_files: int = 0
    """Files that are changed too, and left out here by maxTokens."""


class RefactorTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(scope=CONTROL, camel_case=True, idempotent=False, destructive=True, output="code")
    async def refactor(
        self,
        context: Context,
        op: Annotated[
            Op,
            Meta(
                description="rename a symbol; rewrite by pattern; codemod: several rewrites at once; move a Python "
                "symbol or a file, with imports; organizeImports"
            ),
        ],
        symbol: Annotated[Symbol | None, Meta(description="of rename and move: {path, line, col} or {name}")] = None,
        new_name: Annotated[str, Meta(description="of rename")] = "",
        pattern: Annotated[str, Meta(description="of rewrite: code with $NAME, $$$NAMES for parts")] = "",
        rewrite: Annotated[str, Meta(description="of rewrite: the code instead, with the same names")] = "",
        lang: Annotated[str, Meta(description="of rewrite: the pattern's language")] = "",
        rules: Annotated[
            list[RewriteRule], Meta(max_length=MAX_RULES, description="of codemod: [{pattern, rewrite, lang}]")
        ] = [],  # noqa: B006
        to: Annotated[str, Meta(description="of move: a module for a symbol, a folder for a file")] = "",
        paths: Annotated[
            list[str], Meta(description="files, folders or globs that may change; without it all of the workspace")
        ] = [],  # noqa: B006
        dry_run: Annotated[bool, Meta(description="only show the diffs; false writes and returns counts")] = True,
        expect_hash: Annotated[
            str | None, Meta(description="hash of a dry run: write only if the result is still the same")
        ] = None,
        unsure: Annotated[
            bool, Meta(description="of rename: also attributes of objects whose type is not known")
        ] = False,
        docs: Annotated[bool, Meta(description="of rename: also in comments and strings of Python")] = False,
        remove_unused: Annotated[bool, Meta(description="of organizeImports: also drop unused ones")] = False,
        include_ignored: Annotated[bool, Meta(description="also files that git ignores")] = False,
        root: Annotated[str | None, Meta(description="folder inside the workspace to work in")] = None,
        max_tokens: Annotated[int, Meta(ge=200, le=100_000, description="of the result")] = 8000,
    ) -> RefactorResult:
        """Rename, move or rewrite code across files, with imports; returns {edits, applied, hash, undoToken}."""
        workspace = await self._session.workspace(context, root)
        if op == "rewrite":
            _need(op, pattern=pattern)
            rules = [RewriteRule(pattern, rewrite, lang)]
        job = Job(
            op,
            [bytes(one) for one in workspace.roots],
            bytes(workspace.base),
            symbol or Symbol(),
            new_name,
            to,
            rules,
            paths,
            bool(paths),
            include_ignored,
            unsure,
            docs,
        )
        changes, notes, engine, what = await self._plan(job, workspace, remove_unused)
        written = await write_changes(
            changes,
            workspace,
            self._session.undo,
            what,
            dry_run=dry_run,
            expect_hash=expect_hash,
            max_diff_chars=max_tokens * 4,
        )
        edits, more = fit_edits(written.edits, max_tokens)
        return RefactorResult(edits, written.applied, written.plan_hash, written.undo_token, engine, notes, more)

    async def _plan(
        self, job: Job, workspace: Workspace, remove_unused: bool
    ) -> tuple[list[FileChange], list[str], str, str]:
        """Changes, notes, the engine, and what it is, for the undo record."""
        if job.op == "organizeImports":
            from dari.codetools.refactor.imports import organize_imports

            changes, notes, engine = await organize_imports(
                self._session,
                workspace,
                job.paths or ["."],
                removes_unused=remove_unused,
                include_ignored=job.include_ignored,
                timeout_s=TIMEOUT_S,
            )
            return changes, notes, engine, "organizeImports"
        if job.op in ("rename", "move") and not (job.symbol.path or job.symbol.name):
            raise InvalidInput(f"{job.op} needs symbol", "symbol {path, line, col} or {name}")
        if job.op == "rename":
            _need(job.op, newName=job.new_name)
        if job.op == "codemod" and not job.rules:
            raise InvalidInput("codemod needs rules", 'rules [{"pattern": "…", "rewrite": "…", "lang": "…"}]')
        changes, plan = await make_changes(self._session, workspace, job, TIMEOUT_S)
        return changes, plan.notes, plan.engine, plan.what


def _need(op: str, **given: str) -> None:
    for name, value in given.items():
        if not value:
            raise InvalidInput(f"{op} needs {name}", f"give {name}")
