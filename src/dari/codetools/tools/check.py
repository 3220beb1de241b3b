"""`crewx_tools_check`: everything about a change in one call."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from dari.codetools.check.run import PARTS, CheckFound, CheckRequest, Part, check, find_changed
from dari.codetools.check.steps import NextStep, count_steps
from dari.codetools.engines.rewrite import FileError
from dari.codetools.engines.select import select_files
from dari.codetools.engines.usage import EngineUse
from dari.codetools.session import CodeSession
from dari.core.context import Context
from dari.core.scopes import CONTROL
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.errors import InvalidInput

MAX_ERRORS = 20


class TestCounts(Struct, frozen=True, omit_defaults=True, rename="camel"):
    framework: str
    passed: int
    failed: int
    errors: int = 0
    skipped: int = 0
    duration_ms: int = 0
    stopped: str = ""
    notes: list[str] = []


class CheckResult(Struct, frozen=True, omit_defaults=True):
    ok: bool
    """Nothing is wrong, and everything that the project asks for could be run."""
    next: list[NextStep]
    """What to do, first things first."""
    counts: dict[str, int]
    files: int
    engines: list[EngineUse]
    tests: TestCounts | None = None
    errors: list[FileError] = []
    """Engines that could not be run."""
    notes: list[str] = []
    more: int = 0
    """Steps that were left out."""


class CheckTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(scope=CONTROL, camel_case=True, destructive=False, timeout_s=INNER_LIMITS_ONLY)
    async def check(
        self,
        context: Context,
        paths: Annotated[
            list[str],
            Meta(description="files, folders and globs; default: what changed since `since`", max_length=1000),
        ] = [],  # noqa: B006
        since: Annotated[
            str | None,
            Meta(
                description="a commit, branch or tag (default HEAD), a time such as '2 hours ago', or 'session' for "
                "since this session began"
            ),
        ] = None,
        only: Annotated[list[Part], Meta(description="some of format, lint, types, tests; default: all")] = [],  # noqa: B006
        max_steps: Annotated[int, Meta(description="entries of next", ge=1, le=500)] = 30,
        max_tokens: Annotated[
            int, Meta(description="size of the tracebacks of failed tests", ge=100, le=100_000)
        ] = 2000,
        timeout_ms: Annotated[int, Meta(description="of the tests", ge=100, le=3_600_000)] = 300_000,
        root: Annotated[str | None, Meta(description="folder in the workspace that paths start from")] = None,
    ) -> CheckResult:
        """Check a change: format, lint, types and the tests it touches; returns {ok, next} with what to do first."""
        workspace = await self._session.workspace(context, root)
        if paths and since is not None:
            raise InvalidInput("paths and since exclude each other", "name paths, or the commit to compare with")
        if paths:
            selection = await asyncio.to_thread(
                select_files, workspace, paths, lambda language: (*language.format, *language.lint, *language.types)
            )
            files = list(selection.files)
        else:
            files = await find_changed(self._session, workspace, since or "HEAD")
        if not files:
            return CheckResult(True, [], {}, 0, [], notes=[f"no file changed since {since or 'HEAD'}"])
        request = CheckRequest(files, only or PARTS, timeout_ms / 1000, max_tokens)
        return _to_result(await check(self._session, workspace, request, context.report), len(files), max_steps)


def _to_result(found: CheckFound, files: int, max_steps: int) -> CheckResult:
    report = found.tests
    tests = None
    if report is not None:
        tests = TestCounts(
            report.framework,
            report.passed,
            report.failed,
            report.errors,
            report.skipped,
            report.duration_ms,
            report.stopped or "",
            report.notes,
        )
    has_failed = report is not None and (report.stopped is not None or report.failed > 0 or report.errors > 0)
    return CheckResult(
        not found.steps and not has_failed and all(error.optional for error in found.errors),
        found.steps[:max_steps],
        count_steps(found.steps),
        files,
        found.engines,
        tests,
        found.errors[:MAX_ERRORS],
        found.notes,
        max(0, len(found.steps) - max_steps),
    )
