"""One search from its arguments to its page: which engine, what it found, and what of it fits."""

from __future__ import annotations

import asyncio
import platform
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dari.codetools.search.cursor import SearchPosition, read_cursor, write_cursor
from dari.codetools.search.file_filter import FileFilter
from dari.codetools.search.line_search import SearchClock, StopSearch, make_matcher, search_file
from dari.codetools.search.query import CodeQuery, find_scopes, is_below, path_key
from dari.codetools.search.ripgrep import MustSearch, RipgrepSearch, check_hits, find_ripgrep, ripgrep_version
from dari.codetools.search.ripgrep_events import FileHits
from dari.codetools.search.rows import BYTES_PER_TOKEN, FoundLine, MatchPage, SearchMatch, fill_page, show_path
from dari.codetools.search.structural import StructuralSearch, engine_name, language_named
from dari.codetools.search.walk import walk
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import InvalidInput

SEARCH_TIMEOUT_S = 60.0
MAX_ROWS_INLINE = 50
"""So many rows are made sooner than a thread begins: ripgrep has just read their files."""
T = TypeVar("T")


class SearchStats(Struct, frozen=True, omit_defaults=True):
    ms: int
    engine: str
    """With its version."""
    files: int | UnsetType = UNSET
    """Files with a match in all; left out when the search stopped at a full page."""
    skipped: int = 0
    """Files above 2 MB, which mode ast does not parse."""


class CodeSearchResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Of matches, files and counts the one that was asked for is there."""

    truncated: bool
    """There is more: ask again with cursor."""
    stats: SearchStats
    matches: list[SearchMatch] | UnsetType = UNSET
    files: list[str] | UnsetType = UNSET
    counts: dict[str, int] | UnsetType = UNSET
    """Lines with a match, by file."""
    cursor: str | UnsetType = UNSET


async def run_search(
    session: CodeSession, workspace: Workspace, query: CodeQuery, cursor: str | None
) -> CodeSearchResult:
    if "\0" in query.pattern:
        raise InvalidInput("pattern must not hold a NUL character", "search text files by their text")
    fingerprint = query.fingerprint(workspace.base)
    since = read_cursor(cursor, fingerprint)
    search = _Search(session, workspace, query, since)
    started = time.perf_counter()
    if query.mode == "ast":
        page, counts = await search.by_structure()
    elif (engine := find_ripgrep(session, workspace)) is not None:
        search.engine = await ripgrep_version(session, engine)
        page, counts = await search.by_ripgrep(
            RipgrepSearch(session, engine, query, search.scopes, search.files, workspace.base, SEARCH_TIMEOUT_S)
        )
    else:
        search.engine = f"python {platform.python_version()}"
        page, counts = await search.by_python()
    ms = round((time.perf_counter() - started) * 1000)
    found_in = UNSET if search.file_count is None else search.file_count
    stats = SearchStats(ms, search.engine, found_in, search.skipped)
    if page is not None:
        last, shown = page.last, CodeSearchResult(page.last is not None, stats, matches=page.matches)
    else:
        kept, last = _fit_counts(counts, search.name_of, query)
        if query.output == "files":
            shown = CodeSearchResult(last is not None, stats, files=list(kept))
        else:
            shown = CodeSearchResult(last is not None, stats, counts=kept)
    if last is None:
        return shown
    return CodeSearchResult(True, stats, shown.matches, shown.files, shown.counts, write_cursor(fingerprint, last))


Counts = list[tuple[str, int]]


class _Search:
    def __init__(
        self, session: CodeSession, workspace: Workspace, query: CodeQuery, since: SearchPosition | None
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._query = query
        self._since = since
        self.scopes = find_scopes(workspace, query.paths)
        self.files = FileFilter(query, self.scopes, str(workspace.base))
        self.engine = ""
        self.file_count: int | None = None
        self.skipped = 0
        self._clock = SearchClock(SEARCH_TIMEOUT_S)

    def name_of(self, path: str) -> str:
        root = next(root for root in self._workspace.roots if is_below(path, str(root)))
        relative = path[len(str(root)) :].lstrip("/")
        return show_path(self._workspace.show(WorkspacePath(root, relative)))

    async def by_ripgrep(self, ripgrep: RipgrepSearch) -> tuple[MatchPage | None, Counts]:
        if self._query.output != "matches":
            counts = await ripgrep.counts()
            self.file_count = len(counts)
            return None, self._after_cursor(counts)
        hits = await ripgrep.matches(self._since)
        self.file_count = ripgrep.file_count

        def page(may_search: bool) -> MatchPage:
            def lines_of(one: FileHits) -> list[FoundLine]:
                return check_hits(one, self._query, self._since, self._clock, may_search=may_search)

            return self._page(((one.path, self.name_of(one.path), lines_of(one)) for one in hits), ripgrep.is_common)

        if sum(one.count for one in hits) <= MAX_ROWS_INLINE:
            try:
                return page(may_search=False), []
            except MustSearch:
                pass
        return await self._in_thread(lambda: page(may_search=True)), []

    async def by_python(self) -> tuple[MatchPage | None, Counts]:
        matcher = make_matcher(self._query)
        counts_only = self._query.output != "matches"
        wanted = 1 if self._query.output == "files" else 1 << 60
        if not counts_only:
            wanted = self._query.max_matches + 1

        def search(path: str) -> list[FoundLine]:
            return search_file(
                path,
                matcher,
                self._clock,
                context=0 if counts_only else self._query.context,
                since_line=self._since_line(path),
                wanted=wanted,
                is_named=self.files.is_named(path),
            )

        return await self._in_thread(lambda: self._over_files(search, lambda path: True))

    async def by_structure(self) -> tuple[MatchPage | None, Counts]:
        lang = language_named(self._query.lang)
        self.engine = await asyncio.to_thread(engine_name)
        structural = StructuralSearch(self._query.pattern, lang, self._query.context, self._clock)

        candidates = await self._files_with(structural.needle)

        def search() -> tuple[MatchPage | None, Counts]:
            page, counts = self._over_files(
                lambda path: structural.search_file(path, self._since), structural.wants, candidates
            )
            if not counts and (page is None or not page.matches) and self._since is None:
                structural.check_pattern()
            self.skipped = structural.skipped
            return page, counts

        return await self._in_thread(search)

    async def _files_with(self, word: str) -> list[str] | None:
        """Where ripgrep finds the word, in a tenth of the time that we need to read the files; None without ripgrep."""
        engine = find_ripgrep(self._session, self._workspace) if word else None
        if engine is None:
            return None
        query = replace(self._query, pattern=word, mode="literal", case="sensitive", output="files")
        ripgrep = RipgrepSearch(
            self._session, engine, query, self.scopes, self.files, self._workspace.base, SEARCH_TIMEOUT_S
        )
        since = b"" if self._since is None else self._since.key
        found = await ripgrep.counts()
        return [path for path, _ in found[bisect_left(found, since, key=lambda one: path_key(one[0])) :]]

    def _over_files(
        self,
        search: Callable[[str], list[FoundLine]],
        wants: Callable[[str], bool],
        candidates: Sequence[str] | None = None,
    ) -> tuple[MatchPage | None, Counts]:
        """`candidates` instead of all files, in order."""
        count = 0
        paths = (
            candidates
            if candidates is not None
            else walk(
                self.scopes,
                self.files,
                include_hidden=self._query.include_hidden,
                include_ignored=self._query.include_ignored,
                since=None if self._since is None else self._since.key,
            )
        )

        def files() -> Iterator[tuple[str, str, Sequence[FoundLine]]]:
            nonlocal count
            for path in paths:
                self._clock.check()
                if wants(path) and (lines := search(path)):
                    count += 1
                    yield path, self.name_of(path), lines

        if self._query.output == "matches":
            page = self._page(files(), False)
            self.file_count = count if page.last is None and self._since is None else None
            return page, []
        counts = self._after_cursor([(path, len(lines)) for path, _, lines in files()])
        self.file_count = count if self._since is None else None
        return None, counts

    def _page(self, files: Iterator[tuple[str, str, Sequence[FoundLine]]], is_common: bool) -> MatchPage:
        return fill_page(files, self._query.max_matches, self._query.max_tokens, is_common)

    def _since_line(self, path: str) -> int:
        return self._since.line if self._since is not None and path_key(path) == self._since.key else 0

    def _after_cursor(self, counts: Counts) -> Counts:
        if self._since is None:
            return counts
        return counts[bisect_right(counts, self._since.key, key=lambda one: path_key(one[0])) :]

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """A thread cannot be cancelled: it looks for a stop between two blocks of a file."""
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            self._clock.stop.set()
            raise
        except StopSearch:
            raise AssertionError("only a cancelled search is stopped") from None


def _fit_counts(
    counts: Counts, name_of: Callable[[str], str], query: CodeQuery
) -> tuple[dict[str, int], SearchPosition | None]:
    """By the caller's names, as many as fit; the position when there are more."""
    kept: dict[str, int] = {}
    left_bytes = query.max_tokens * BYTES_PER_TOKEN
    last: SearchPosition | None = None
    for path, count in counts:
        name = name_of(path)
        left_bytes -= len(name) + (3 if query.output == "files" else 8)
        if kept and (left_bytes < 0 or len(kept) == query.max_matches):
            return kept, last
        kept[name] = count
        last = SearchPosition(path_key(path))
    return kept, None
