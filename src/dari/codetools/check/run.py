"""Format, lint, types and the tests that a change touches, side by side: nothing of it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from dari.codetools.check.steps import NextStep, order_steps
from dari.codetools.diff.comparison import compare
from dari.codetools.diff.patch import LINK
from dari.codetools.diff.snapshot import is_secret
from dari.codetools.engines.rewrite import FileError
from dari.codetools.engines.select import FileSelection
from dari.codetools.engines.usage import EngineUse
from dari.codetools.format.run import FormatPlan, plan_format
from dari.codetools.lint.diagnostic import SYNTAX
from dari.codetools.lint.rules import RuleFilter
from dari.codetools.lint.run import LintPlan, plan_lint
from dari.codetools.session import CodeSession
from dari.codetools.testing.projects import SUFFIXES
from dari.codetools.testing.report import TestReport
from dari.codetools.testing.service import RunOptions, run_tests
from dari.codetools.testing.touching.choice import find_touching
from dari.codetools.types import TypesFound, check_types
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError

Part = Literal["format", "lint", "types", "tests"]
PARTS: tuple[Part, ...] = ("format", "lint", "types", "tests")
MAX_FAILURES = 10
Tell = Callable[[float, float | None, str | None], None]


class CheckFound(Struct, frozen=True):
    steps: list[NextStep]
    engines: list[EngineUse]
    errors: list[FileError]
    tests: TestReport | None
    """None when they were not run; `notes` say why."""
    notes: list[str]


class CheckRequest(Struct, frozen=True):
    files: Sequence[WorkspacePath]
    parts: Collection[Part]
    timeout_s: float
    """Of the tests."""
    max_tokens: int
    """Of tracebacks."""


async def find_changed(session: CodeSession, workspace: Workspace, since: str) -> list[WorkspacePath]:
    """The regular files that differ from a commit, a time or the begin of the session, as they are now."""
    found = []
    async with compare(session, workspace, since) as comparison:
        for one in comparison.changes:
            if one.status in ("deleted", "submodule") or one.new_mode == LINK or is_secret(one.path):
                continue
            try:
                path = workspace.locate(str(comparison.place(one.path).absolute))
            except DariError:
                continue  # below a link that leads out
            if path.absolute.is_file():
                found.append(path)
    return found


async def check(session: CodeSession, workspace: Workspace, request: CheckRequest, tell: Tell) -> CheckFound:
    """All parts at once. Tests are stopped when a file does not parse: they would only say so again."""
    selection = FileSelection(request.files)
    names = {workspace.show(file) for file in request.files}
    done: list[str] = []

    def say(task: asyncio.Task[object]) -> None:
        if (part := task.get_name()) in request.parts:
            done.append(part)
            tell(len(done), len(request.parts), f"{part} done")

    async with asyncio.TaskGroup() as group:
        tests = group.create_task(_tests(session, workspace, request), name="tests")
        formatting = group.create_task(_format(session, workspace, selection, request), name="format")
        typing = group.create_task(_types(session, workspace, request), name="types")
        linting = group.create_task(_lint(session, workspace, selection, request), name="lint")
        for task in (tests, formatting, typing, linting):
            task.add_done_callback(say)
        lint = await linting
        if any(one.rule == SYNTAX for one in lint.diagnostics):
            tests.cancel()
    plan, types = formatting.result(), typing.result()
    report, note = (None, "tests were not run: a file does not parse") if tests.cancelled() else tests.result()
    unparsed = [(error.path, error.line, error.message) for error in plan.errors if error.line]
    steps = order_steps(
        names,
        lint.diagnostics,
        types.diagnostics,
        unparsed,
        report.failures if report else (),
        [workspace.show(change.path) for change in plan.changes],
    )
    errors = [error for error in (*plan.errors, *lint.errors, *types.errors) if not error.line]
    return CheckFound(steps, _join(plan.engines, lint.engines, types.engines), errors, report, [note] if note else [])


async def _format(
    session: CodeSession, workspace: Workspace, selection: FileSelection, request: CheckRequest
) -> FormatPlan:
    if "format" not in request.parts:
        return FormatPlan([], 0, [], [])
    try:
        return await plan_format(
            session, workspace, selection, style="project", line_range=None, tell=lambda done, total, what: None
        )
    except DariError as error:
        return FormatPlan([], 0, [FileError(".", f"format: {error.message}")], [])


async def _lint(
    session: CodeSession, workspace: Workspace, selection: FileSelection, request: CheckRequest
) -> LintPlan:
    if "lint" not in request.parts:
        return LintPlan([], [], [], [], 0)
    try:
        return await plan_lint(
            session, workspace, selection, fix="none", rules=RuleFilter(), tell=lambda done, total, what: None
        )
    except DariError as error:
        return LintPlan([], [], [FileError(".", f"lint: {error.message}")], [], 0)


async def _types(session: CodeSession, workspace: Workspace, request: CheckRequest) -> TypesFound:
    if "types" not in request.parts:
        return TypesFound([], [], [])
    try:
        return await check_types(session, workspace, request.files)
    except DariError as error:
        return TypesFound([], [FileError(".", f"types: {error.message}")], [])


async def _tests(session: CodeSession, workspace: Workspace, request: CheckRequest) -> tuple[TestReport | None, str]:
    """The tests that touch the code among the files. Never all of them: that may take an hour, and has a tool."""
    if "tests" not in request.parts:
        return None, ""
    names = [workspace.show(file) for file in request.files if file.absolute.suffix in SUFFIXES]
    if not names:
        return None, "tests were not run: no code changed; crewx_tools_test runs all"
    try:
        choice = await find_touching(workspace, names)
        if choice.is_all:
            return None, f"tests were not run: {'; '.join(choice.notes)}; crewx_tools_test runs all"
        options = RunOptions(
            targets=[one.target for one in choice.chosen],
            framework=None,
            keyword="",
            fail_fast=False,
            timeout_s=request.timeout_s,
            last_failed=False,
            touching=(),
            max_failures=MAX_FAILURES,
            max_tokens=request.max_tokens,
            env={},
        )
        report = await run_tests(session, workspace, options, lambda done, total, what: None)
        return msgspec.structs.replace(report, notes=[*report.notes, *choice.notes]), ""
    except DariError as error:
        return None, f"tests: {error.message}"


def _join(*uses: Sequence[EngineUse]) -> list[EngineUse]:
    """Each engine once: ruff formats and lints."""
    files: dict[tuple[str, str], int] = {}
    for use in (use for some in uses for use in some):
        files[use.name, use.version] = max(files.get((use.name, use.version), 0), use.files)
    return [EngineUse(name, version, count) for (name, version), count in files.items()]
