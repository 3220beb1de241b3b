"""Content in, content out: an engine that formats or repairs files, on stdin or on copies of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.codetools.engines.locate import EngineProgram
from dari.codetools.engines.mirror import Mirror, MirroredFile, open_mirror
from dari.codetools.session import CodeSession
from dari.errors import DariError
from dari.process.run import ProgramRun
from dari.process.stderr_tail import MAX_TAIL_BYTES, MAX_TAIL_LINES
from dari.text.sanitize import escape_and_shorten, escape_hidden

MAX_BY_STDIN = 3
"""More files than this are copied and handed to one process, where the engine can rewrite files in place."""
MAX_COPY_BYTES = 1 << 20
"""Larger files go on stdin: biome passes them over as files (`files.maxSize`), with a warning."""
ENGINES_AT_ONCE = 4
TIMEOUT_S = 120.0
_BOM = b"\xef\xbb\xbf"
_MAX_MESSAGE_CHARS = 300


class FileError(Struct, frozen=True, omit_defaults=True):
    """Why a file was left as it is; for an engine that is missing, `path` is the first of its files."""

    path: str
    message: str
    line: int = 0
    optional: bool = False
    """The project does not ask for the engine that is missing."""


class Rewriter(Struct, frozen=True):
    """How one engine is called. Arguments are fixed lists, and paths in them are absolute: none is an option."""

    on_stdin: Callable[[str], Sequence[str]]
    """The arguments for the content of the file of this name."""
    in_place: Sequence[str] | None = None
    """The arguments before the names of copies; None for an engine that may write more than it is given."""
    error: re.Pattern[str] = re.compile(r"(?:^|:)(?P<line>\d+):\d+: (?P<message>.+)", re.MULTILINE)
    success: frozenset[int] = frozenset({0})
    keeps_line_ends: bool = True
    """It has a rule of its own about line ends. What has none gets back those of the file."""
    env: Mapping[str, str] = {}
    may_empty: bool = False
    """A linter may remove all that a file has: an unused import."""


class Rewritten(Struct, frozen=True):
    """`data` is None where the engine could not do it."""

    source: MirroredFile
    data: bytes | None
    message: str = ""
    line: int = 0


class EnginePlace(Struct, frozen=True):
    """Where an engine runs: the project's folder, or (not `is_project`) nowhere, so that it finds no configuration."""

    folder: Path
    is_project: bool = True


async def rewrite(
    session: CodeSession, engine: EngineProgram, how: Rewriter, sources: Sequence[MirroredFile], place: EnginePlace
) -> list[Rewritten]:
    """What the engine makes of each file, in any order. Nothing in the workspace is touched."""
    small = [source for source in sources if len(source.data) <= MAX_COPY_BYTES]
    if len(small) <= MAX_BY_STDIN or how.in_place is None:
        done = await _on_stdin(session, engine, how, sources, place)
    else:
        large = [source for source in sources if len(source.data) > MAX_COPY_BYTES]
        done = await _on_copies(session, engine, how, how.in_place, small, place)
        done += await _on_stdin(session, engine, how, large, place)
    return [one if one.data is None else _keep_form(one, how) for one in done]


async def _on_stdin(
    session: CodeSession, engine: EngineProgram, how: Rewriter, sources: Sequence[MirroredFile], place: EnginePlace
) -> list[Rewritten]:
    free = asyncio.Semaphore(ENGINES_AT_ONCE)
    with contextlib.ExitStack() as stack:
        empty = ""
        if not place.is_project:
            empty = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"dari-empty-{os.getpid()}-"))

        async def one(source: MirroredFile) -> Rewritten:
            name = source.path.absolute
            if not place.is_project:
                name = Path(empty, source.path.absolute.name)
            async with free:
                try:
                    run = await session.run(
                        engine,
                        how.on_stdin(str(name)),
                        place.folder if place.is_project else Path(empty),
                        stdin=source.data,
                        timeout_s=TIMEOUT_S,
                        env=how.env,
                        is_single=engine.is_single,
                    )
                except DariError as error:
                    return Rewritten(source, None, f"{engine.name}: {error.message}")
            if run.end != "exited" or run.returncode not in how.success:
                return explain(source, engine, how, run)
            if not run.stdout and source.data.strip() and not how.may_empty:
                return Rewritten(source, None, f"{engine.name} printed nothing")  # nobody means to empty the file
            return Rewritten(source, run.stdout)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(source)) for source in sources]
    return [task.result() for task in tasks]


async def _on_copies(
    session: CodeSession,
    engine: EngineProgram,
    how: Rewriter,
    arguments: Sequence[str],
    sources: Sequence[MirroredFile],
    place: EnginePlace,
) -> list[Rewritten]:
    try:
        async with open_mirror(sources, has_links=place.is_project) as mirror:
            names = [str(mirror.path_of(source.path.absolute)) for source in sources]
            cwd = mirror.path_of(place.folder)
            run = await session.run(
                engine,
                (*arguments, *names),
                cwd if cwd.is_dir() else Path(names[0]).parent,
                timeout_s=TIMEOUT_S,
                env=how.env,
                is_single=engine.is_single,
            )
            after = await asyncio.to_thread(lambda: [_read_back(mirror, source, how) for source in sources])
            run = msgspec.structs.replace(run, stderr=mirror.hide_paths(run.stderr))
    except DariError as error:
        return [Rewritten(source, None, f"{engine.name}: {error.message}") for source in sources]
    shown = [_shown_names(source.path.absolute, place.folder) for source in sources]
    if run.end == "exited" and run.returncode in how.success:
        return after
    return await _sort_out(session, engine, how, run, after, shown, place)


async def _sort_out(
    session: CodeSession,
    engine: EngineProgram,
    how: Rewriter,
    run: ProgramRun,
    after: list[Rewritten],
    shown: list[tuple[str, str]],
    place: EnginePlace,
) -> list[Rewritten]:
    """Some files failed. Those that stderr names are asked for alone, for their message; other changed ones are done.

    Where the engine was killed, or failed without a name, no copy is trusted: it may have been writing any of them.
    """
    said = run.stderr
    named = {at for at, names in enumerate(shown) if any(name in said for name in names)}
    is_unchanged = [one.data is None or one.data == one.source.data for one in after]
    was_killed = run.end != "exited" or run.returncode < 0
    is_cut = len(said) > MAX_TAIL_BYTES - 2048 or said.count("\n") >= MAX_TAIL_LINES - 10
    if run.end == "exited" and not is_cut and not named and all(is_unchanged):
        return [explain(one.source, engine, how, run) for one in after]
    if was_killed or is_cut or not named:
        is_doubtful = was_killed or not named
        rest = [at for at in range(len(after)) if is_doubtful or at in named or is_unchanged[at]]
        if len(rest) <= MAX_BY_STDIN:
            again = await _on_stdin(session, engine, how, [after[at].source for at in rest], place)
        elif run.end == "timed_out":
            again = [explain(after[at].source, engine, how, run) for at in rest]
        else:
            half = len(rest) // 2
            parts = [[after[at].source for at in part] for part in (rest[:half], rest[half:])]
            again = [one for part in parts for one in await rewrite(session, engine, how, part, place)]
    else:
        rest = sorted(named)
        again = await _on_stdin(session, engine, how, [after[at].source for at in rest], place)
    for at, one in zip(rest, again, strict=True):
        after[at] = one
    return after


def explain(source: MirroredFile, engine: EngineProgram, how: Rewriter, run: ProgramRun) -> Rewritten:
    """The failure of one file in the engine's words, without the rest of them."""
    if run.end == "timed_out":
        return Rewritten(source, None, f"{engine.name} took longer than {TIMEOUT_S:g} s")
    if run.end == "output_limit":
        return Rewritten(source, None, f"{engine.name} printed too much")
    found = how.error.search(run.stderr)
    if found:
        message = escape_hidden((found["message"] or f"{engine.name} cannot parse it").strip())
        return Rewritten(source, None, message[:_MAX_MESSAGE_CHARS], int(found["line"] or 0))
    words = (
        " ".join(run.stderr.replace("\u2501", "").split()) or f"it ended with code {run.returncode} and said nothing"
    )
    return Rewritten(source, None, f"{engine.name}: {escape_and_shorten(words, _MAX_MESSAGE_CHARS).text}")


def _shown_names(path: Path, folder: Path) -> tuple[str, str]:
    """As an engine may name a file: whole, or as seen from where it runs."""
    return str(path), str(path.relative_to(folder)) if folder in path.parents else path.name


def _read_back(mirror: Mirror, source: MirroredFile, how: Rewriter) -> Rewritten:
    try:
        data = mirror.read(source)
    except OSError as error:
        return Rewritten(source, None, f"the engine left no file: {error.strerror or error}")
    if not data and source.data.strip() and not how.may_empty:
        return Rewritten(source, None, "the engine left an empty file")  # nobody means to empty the file
    return Rewritten(source, data)


def _keep_form(one: Rewritten, how: Rewriter) -> Rewritten:
    """The byte order mark stays, and so do the line ends where the engine has no rule for them."""
    before, after = one.source.data, one.data or b""
    if before.startswith(_BOM) and after and not after.startswith(_BOM):
        after = _BOM + after
    crlf = before.count(b"\r\n")
    if not how.keeps_line_ends and crlf and crlf == before.count(b"\n") and b"\r" not in after:
        after = after.replace(b"\n", b"\r\n")
    if after == one.data:
        return one
    return Rewritten(one.source, after)
