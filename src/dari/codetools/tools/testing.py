"""`crewx_tools_test`: run tests."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dari.codetools.session import CodeSession
from dari.codetools.testing.report import TestReport
from dari.codetools.testing.request import Framework
from dari.codetools.testing.service import RunOptions, run_tests
from dari.core.context import Context
from dari.core.scopes import CONTROL
from dari.core.tool import INNER_LIMITS_ONLY, tool

Names = list[Annotated[str, Meta(min_length=1, max_length=4096)]]


class TestingTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(
        scope=CONTROL,
        camel_case=True,
        idempotent=False,
        destructive=False,
        open_world=True,
        timeout_s=INNER_LIMITS_ONLY,
    )
    async def test(
        self,
        context: Context,
        targets: Annotated[
            Names,
            Meta(
                max_length=1000,
                description="files, folders, globs, test ids as failures have them (path::name), or names of tests and "
                "symbols; default: all tests of the workspace",
            ),
        ] = [],  # noqa: B006
        framework: Annotated[
            Literal["auto", "pytest", "unittest", "vitest", "jest", "go", "cargo"],
            Meta(description="auto (default): what the project's files say"),
        ] = "auto",
        keyword: Annotated[
            str, Meta(max_length=1000, description="only tests whose name matches, in the framework's own syntax")
        ] = "",
        fail_fast: Annotated[bool, Meta(description="stop at the first failure")] = False,
        timeout_ms: Annotated[
            int, Meta(ge=100, le=3_600_000, description="of the whole run (default 300000); what ran until then counts")
        ] = 300_000,
        last_failed: Annotated[bool, Meta(description="only the tests that failed in the last runs here")] = False,
        touching: Annotated[
            Names, Meta(max_length=1000, description="files or symbols: run only the tests that touch them")
        ] = [],  # noqa: B006
        max_failures: Annotated[
            int, Meta(ge=0, le=1000, description="failures that the result describes (default 20); all are counted")
        ] = 20,
        max_tokens: Annotated[
            int, Meta(ge=100, le=100_000, description="for tracebacks and output of failures (default 4000)")
        ] = 4000,
        env: Annotated[
            dict[str, str], Meta(description="environment variables to add; little is inherited (PATH, HOME, LANG …)")
        ] = {},  # noqa: B006
        root: Annotated[str | None, Meta(description="folder inside the workspace; default: all of it")] = None,
    ) -> TestReport:
        """Run tests, those that touch a change too; returns counts and failures with place, message and traceback."""
        workspace = await self._session.workspace(context, root)
        wanted: Framework | None = None if framework == "auto" else framework
        options = RunOptions(
            targets, wanted, keyword, fail_fast, timeout_ms / 1000, last_failed, touching, max_failures, max_tokens, env
        )
        return await run_tests(self._session, workspace, options, context.report)
