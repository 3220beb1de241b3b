"""Searches of a folder by each engine, without a server between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from dari.codetools.edits.undo import UndoStore
from dari.codetools.search.query import CodeQuery
from dari.codetools.search.ripgrep import NO_RIPGREP
from dari.codetools.search.search import CodeSearchResult, run_search
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace
from dari.core.context import Context
from dari.process.children import Children

EngineName = Literal["ripgrep", "python"]
ENGINES: tuple[EngineName, ...] = ("ripgrep", "python")
PLAIN = CodeQuery("", "literal", "smart", "matches", (".",), (), None, False, False, 0, 200, 100_000)


def make_session(roots: Sequence[Path], children: Children, engine: EngineName = "ripgrep") -> CodeSession:
    async def find_roots(context: Context) -> Sequence[Path]:
        return roots

    environ = {"PATH": os.environ["PATH"], **({NO_RIPGREP: "1"} if engine == "python" else {})}
    return CodeSession(find_roots, environ, children, UndoStore(roots[0].parent / "undo"))


class SearchRunner:
    """One event loop and one owner of processes for many searches."""

    def __init__(self) -> None:
        self._loop = asyncio.Runner()
        self._children = self._loop.run(_open_children())

    def run(self, root: Path, engine: EngineName, query: CodeQuery, cursor: str | None, below: str) -> CodeSearchResult:
        async def search() -> CodeSearchResult:
            session = make_session([root], self._children, engine)
            workspace = Workspace([root])
            async with asyncio.timeout(80):
                return await run_search(session, workspace.narrow(below) if below else workspace, query, cursor)

        return self._loop.run(search())

    def close(self) -> None:
        self._loop.run(self._children.close())
        self._loop.close()


async def _open_children() -> Children:
    return Children()


_runners: list[SearchRunner] = []


@contextmanager
def search_runner() -> Iterator[None]:
    """What `search` runs on, as long as this is open."""
    _runners.append(SearchRunner())
    try:
        yield
    finally:
        _runners.pop().close()


def search(
    root: Path, query: CodeQuery, engine: EngineName = "ripgrep", cursor: str | None = None, below: str = ""
) -> CodeSearchResult:
    found = _runners[-1].run(root, engine, query, cursor, below)
    assert found.stats.engine.startswith(engine if query.mode != "ast" else "ast-grep")
    return found


def rows(root: Path, query: CodeQuery, engine: EngineName = "ripgrep") -> list[tuple[str, int, int, int, str]]:
    """(path, line, col, endCol, text) of every match."""
    matches = search(root, query, engine).matches
    assert isinstance(matches, list)
    return [(one.path, one.line, one.col, one.end_col, one.text) for one in matches]


def names(root: Path, query: CodeQuery, engine: EngineName = "ripgrep") -> list[str]:
    """The files with a match."""
    files = search(root, replace(query, output="files"), engine).files
    assert isinstance(files, list)
    return files
