"""`crewx_tools_search`: text, regular expressions and structure."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.codetools.search.query import Case, CodeQuery, Mode, Output
from dari.codetools.search.search import CodeSearchResult, run_search
from dari.codetools.session import CodeSession
from dari.core.context import Context
from dari.core.tool import tool


class CodeSearchTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(camel_case=True)
    async def search(
        self,
        caller: Context,
        pattern: Annotated[
            str,
            Meta(
                max_length=4096,
                description="what to find: plain text; in mode regex an expression (as in Rust, no look-around), line "
                "by line; in mode ast code with $NAME for one part and $$$NAME for several: print($$$ARGS)",
            ),
        ],
        mode: Annotated[Mode, Meta(description="literal (default), regex, or ast for structure")] = "literal",
        paths: Annotated[
            list[str],
            Meta(max_length=1000, description="files, folders or globs (src/**/*.ts); default: all of root"),
        ] = [],  # noqa: B006 (a schema's default, never changed)
        globs: Annotated[
            list[str],
            Meta(max_length=100, description="narrow to files that match one (*.py, src/**); !glob leaves files out"),
        ] = [],  # noqa: B006
        lang: Annotated[
            str | None, Meta(description="language of mode ast, such as python; default: by file name")
        ] = None,
        case: Annotated[
            Case, Meta(description="smart (default): case counts when the pattern has a capital letter")
        ] = "smart",
        output: Annotated[
            Output,
            Meta(description="matches (default): lines with a match; files: their names only; counts: lines per file"),
        ] = "matches",
        context: Annotated[int, Meta(ge=0, le=10, description="lines around each match, default 0")] = 0,
        max_matches: Annotated[int, Meta(ge=1, le=2000, description="rows of one page, default 200")] = 200,
        max_tokens: Annotated[
            int, Meta(ge=100, le=100_000, description="size of one page in tokens of 4 bytes, default 8000")
        ] = 8000,
        cursor: Annotated[str | None, Meta(description="cursor of the page before, with the same search")] = None,
        root: Annotated[str | None, Meta(description="folder that paths are below; default: the workspace")] = None,
        include_hidden: Annotated[bool, Meta(description="also names that begin with a dot; .git never")] = False,
        include_ignored: Annotated[bool, Meta(description="also files that git or .ignore leave out")] = False,
    ) -> CodeSearchResult:
        """Find text, a regular expression or code by structure; returns {matches, truncated, cursor, stats} by path."""
        workspace = await self._session.workspace(caller, root)
        query = CodeQuery(
            pattern,
            mode,
            case,
            output,
            tuple(paths) or (".",),
            tuple(globs),
            lang,
            include_hidden,
            include_ignored,
            context,
            max_matches,
            max_tokens,
        )
        return await run_search(self._session, workspace, query, cursor)
