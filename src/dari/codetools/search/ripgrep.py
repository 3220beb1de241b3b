"""Search by ripgrep: its command line, its errors, and its matches checked against the files that they are from."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from dari.codetools.engines.locate import EngineProgram, find_engine
from dari.codetools.search.cursor import SearchPosition
from dari.codetools.search.file_filter import FileFilter
from dari.codetools.search.line_search import SearchClock, make_matcher, search_file, too_slow
from dari.codetools.search.query import CodeQuery, SearchScope, has_overlap, path_key
from dari.codetools.search.ripgrep_events import FileHits, RipgrepReader
from dari.codetools.search.rows import FoundLine
from dari.codetools.search.rust_regex import bad_pattern, compile_pattern
from dari.codetools.session import CodeSession
from dari.codetools.workspace import VERSION_CONTROL, Workspace
from dari.errors import DariError, Failed, InvalidInput
from dari.files.inside import opened_file
from dari.process.run import ProgramRun

NO_RIPGREP = "DARI_NO_RIPGREP"
"""Set in the environment, searches work without ripgrep, as on a machine that has none."""
MAX_STREAM_BYTES = 1 << 40
"""Nothing that is read is kept: the time limit ends a search."""
MAX_LIST_BYTES = 64 << 20
_MAX_COUNT_LINE = 50_000
_CASES = {"smart": "--smart-case", "sensitive": "--case-sensitive", "insensitive": "--ignore-case"}
_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
"""Of `--count --null`; with `--crlf` its lines end so, too."""
_versions: dict[tuple[str, int], str] = {}
_CARET = re.compile(r"regex parse error:\n {4}(?P<pattern>[^\n]*)\n {4}(?P<before> *)\^+\n+error: (?P<what>[^\n]+)")


def find_ripgrep(session: CodeSession, workspace: Workspace) -> EngineProgram | None:
    """Ours before the one on the PATH, and none of the project: a search runs no code of a repository."""
    if session.environ.get(NO_RIPGREP):
        return None
    for origin in ("dari", "path"):
        if found := find_engine("rg", workspace, workspace.base, session.environ, origins=(origin,)):
            return found
    return None


async def ripgrep_version(session: CodeSession, engine: EngineProgram) -> str:
    """`ripgrep 14.1.0`; asked once for each program."""
    key = (engine.command[0], os.stat(engine.command[0]).st_mtime_ns)
    if key not in _versions:
        run = await session.run(engine, ["--no-config", "--version"], Path("/"), timeout_s=10, is_single=True)
        _versions[key] = run.stdout.decode("utf-8", "replace").partition("\n")[0].partition(" (")[0].strip()
    return _versions[key]


class RipgrepSearch:
    """One search of one query."""

    def __init__(
        self,
        session: CodeSession,
        engine: EngineProgram,
        query: CodeQuery,
        scopes: Sequence[SearchScope],
        files: FileFilter,
        base: Path,
        timeout_s: float,
    ) -> None:
        self._session = session
        self._engine = engine
        self._query = query
        self._scopes = scopes
        self._files = files
        self._base = base
        self._timeout_s = timeout_s
        self.file_count: int | None = None
        self.is_common = False

    async def matches(self, since: SearchPosition | None) -> list[FileHits]:
        """The first matches of a page and one more, in the order of paths."""
        may_order = not has_overlap(self._scopes)
        self.is_common = may_order and since is not None and (since.is_common or since.line > _MAX_COUNT_LINE)
        while True:
            reader = RipgrepReader(
                self._files.accepts,
                self._files.is_named,
                self._query.max_matches + 1,
                self._query.context,
                since,
                is_ordered=self.is_common,
                may_restart=may_order,
            )
            options = ["--json", f"--context={self._query.context}"]
            if since is None or since.line <= _MAX_COUNT_LINE:
                # A file of which every line matches: ripgrep holds all that it prints of one file in memory.
                options.append(f"--max-count={self._query.max_matches + 1 + (since.line if since else 0)}")
            if self.is_common:
                options += ["--sort=path", "--threads=1"]
            run = await self._session.run(
                self._engine,
                self._arguments(options),
                self._base,
                timeout_s=self._timeout_s,
                max_output_bytes=MAX_STREAM_BYTES,
                on_output=reader.feed,
                is_single=True,
            )
            self._check(run)
            if not reader.must_restart:
                # Of overlapping paths, files that were let go may be counted twice.
                self.file_count = reader.file_count if reader.is_complete and may_order else None
                return reader.files()
            self.is_common = True

    async def counts(self) -> list[tuple[str, int]]:
        """Every file with a match and how many of its lines match, in order; 1 for files alone."""
        counts = self._query.output == "counts"
        run = await self._session.run(
            self._engine,
            self._arguments(["--count" if counts else "--files-with-matches", "--null", "--with-filename"]),
            self._base,
            timeout_s=self._timeout_s,
            max_output_bytes=MAX_LIST_BYTES,
            is_single=True,
        )
        self._check(run)
        if run.end == "output_limit":
            raise InvalidInput(f"files with a match are more than {MAX_LIST_BYTES >> 20} MB of names", "narrow paths")
        # In a thread: of 200,000 files it takes a second.
        return await asyncio.to_thread(self._read_counts, run.stdout, has_counts=counts)

    def _read_counts(self, printed: bytes, *, has_counts: bool) -> list[tuple[str, int]]:
        if has_counts:
            # Not by lines: a path may hold a line end, and no NUL.
            found = {os.fsdecode(path): int(count) for path, count in _COUNT.findall(printed)}
        else:
            found = {os.fsdecode(path): 1 for path in printed.split(b"\0") if path}
        kept = [(path, count) for path, count in found.items() if self._files.accepts(path)]
        return sorted(kept, key=lambda one: path_key(one[0]))

    def _arguments(self, options: Sequence[str]) -> list[str]:
        query = self._query
        arguments = ["--no-config", "--no-messages", "--no-mmap", "--crlf", "--no-ignore-global", _CASES[query.case]]
        arguments += options
        arguments += ["--fixed-strings"] if query.mode == "literal" else []
        arguments += ["--hidden"] if query.include_hidden else []
        arguments += ["--no-ignore"] if query.include_ignored else []
        if query.include_hidden:
            arguments += [f"--glob=!{name}" for name in sorted(VERSION_CONTROL)]
        if names := self._files.name_globs():
            # By type, which only narrows; a --glob would bring ignored files in.
            arguments += [f"--type-add=wanted:{name}" for name in names] + ["--type=wanted"]
        paths = dict.fromkeys(scope.path for scope in self._scopes)
        return [*arguments, f"--regexp={query.pattern}", "--", *paths]

    def _check(self, run: ProgramRun) -> None:
        if run.end == "timed_out":
            raise too_slow(self._timeout_s)
        if run.end == "exited" and run.returncode not in (0, 1) and run.stderr.strip():
            raise explain(self._query.pattern, run.stderr)


def explain(pattern: str, said: str) -> DariError:
    """What ripgrep wrote, as an error with the place in the pattern."""
    if found := _CARET.search(said):
        if "group" in found["what"]:
            # ripgrep puts a group around the pattern, and names that one's place.
            try:
                compile_pattern(pattern, is_literal=False, ignore_case=False)
            except InvalidInput as error:
                return error
        wrapper = len("(?:") if found["pattern"] != pattern and found["pattern"].startswith("(?:") else 0
        return bad_pattern(pattern, max(0, len(found["before"]) - wrapper), found["what"])
    first = said.strip().partition("\n")[0].removeprefix("rg: ").strip()
    if "not allowed in a regex" in first:
        place = max(0, next((pattern.find(one) for one in ("\n", "\r", "\\n", "\\r") if one in pattern), 0))
        return bad_pattern(pattern, place, f"{first}: a search goes line by line")
    if "size limit" in first or "regex" in first:
        return InvalidInput(f"pattern {pattern[:200]!r}: {first}", "repeat less, or search for a part of it")
    return Failed(f"ripgrep: {first}", "try again, or set DARI_NO_RIPGREP=1 to search without it")


class MustSearch(Exception):
    """A file has to be searched again, which may take long."""


def check_hits(
    hits: FileHits, query: CodeQuery, since: SearchPosition | None, clock: SearchClock, *, may_search: bool = True
) -> list[FoundLine]:
    """The lines of a file, after a look into the file itself, opened without a link in its path.

    ripgrep opens files by name. What it read through a link that was swapped in for a folder is not in the file that
    we open, so it is not shown. A file that was decoded (UTF-16), changed meanwhile or has a line that is too long for
    the stream is searched again; `MustSearch` where it may not be.
    """
    try:
        if not hits.is_cut:
            lines = hits.lines()
            if _are_in(hits.path, lines):
                return lines
    except OSError:
        return []
    if not may_search:
        raise MustSearch
    since_line = since.line if since is not None and since.key == hits.key else 0
    return search_file(
        hits.path,
        make_matcher(query),
        clock,
        context=query.context,
        since_line=since_line,
        wanted=query.max_matches + 1,
    )


def _are_in(path: str, lines: Sequence[FoundLine]) -> bool:
    with opened_file(Path(path)) as (file, real):
        if real != path or not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(f"{path} is not where it was")
        head = os.pread(file, 3, 0)
        shift = 3 if head == b"\xef\xbb\xbf" else 0
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return False
        return all(os.pread(file, len(raw), offset + shift) == raw for line in lines for offset, raw in line.evidence)
