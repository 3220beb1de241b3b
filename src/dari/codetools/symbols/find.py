"""Definitions and references of a name across files."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from dari.codetools.engines.locate import EngineProgram, find_engine
from dari.codetools.engines.versions import version_of
from dari.codetools.session import CodeSession
from dari.codetools.symbols.references import Certainty, ReferenceSite, dotted, judge, matches
from dari.codetools.symbols.source import MAX_SOURCE_BYTES, NoGrammar, NotParsed, ask_about, parser_version
from dari.codetools.workspace import VERSION_CONTROL, Workspace, WorkspacePath
from dari.errors import DariError, InvalidInput
from dari.files.secrets import is_secret_folder, is_secret_name
from dari.syntax.languages import has_language

MAX_FILES = 3_000
MAX_PARSING_S = 60.0
PARALLEL = 4
"""Files that are read while others are parsed."""
DATA_KINDS = frozenset(("key", "heading"))
"""Definitions only for those who ask for them: YAML has a key `run` in every job."""


class Reference(Struct, frozen=True):
    place: ReferenceSite
    certainty: Certainty


class FoundSymbols(Struct, frozen=True):
    definitions: list[ReferenceSite]
    references: list[Reference]
    others: int
    """Definitions of the same last name that the qualified name leaves out."""
    locals: int
    """Places where a parameter or local variable has the name."""
    files: int
    engine: str
    problems: list[str]
    """Files that hold the word and were not parsed, with the reason."""
    unread: int
    """Files that hold the word and were not looked at: there are too many."""


async def find_symbol(
    session: CodeSession,
    workspace: Workspace,
    name: str,
    patterns: Sequence[str],
    *,
    kind: str | None,
    in_text: bool,
    report: Callable[[int, int], None],
) -> FoundSymbols:
    """`name` may be qualified; its last part is what is looked for."""
    word = dotted(name).rpartition(".")[2]
    if not word or len(name) > 300 or any(char.isspace() or char == "\0" for char in name):
        raise InvalidInput(
            f"name must be a symbol such as run or Shop.sell, got {name[:100]!r}", "use crewx_tools_search for a text"
        )
    files, engine = await files_with(session, workspace, patterns, word)
    places, problems, unread = await _parse_all(session, workspace, files, word, report)
    if kind not in DATA_KINDS:
        places = [one for one in places if one.at.role != "definition" or one.at.kind not in DATA_KINDS]
    definitions = [one for one in places if one.at.role == "definition"]
    wanted = [one for one in definitions if matches(one, name)]
    others = [one for one in definitions if not matches(one, name)]
    references, local = _judge_all(places, wanted, others, in_text=in_text, is_qualified=dotted(name) != word)
    wanted.sort(key=lambda one: (one.at.kind == "declaration", one.path, one.at.line))
    return FoundSymbols(
        wanted,
        references,
        len(others),
        local,
        len(files) - unread,
        f"{engine}, {parser_version()}",
        problems,
        unread,
    )


async def _parse_all(
    session: CodeSession,
    workspace: Workspace,
    files: Sequence[WorkspacePath],
    word: str,
    report: Callable[[int, int], None],
) -> tuple[list[ReferenceSite], list[str], int]:
    """The places in the order of the files, what could not be parsed, and how many files there was no time for."""
    found: list[list[ReferenceSite]] = [[] for _ in files]
    problems: list[str] = []
    ends_at = time.monotonic() + MAX_PARSING_S
    turns = iter(range(min(len(files), MAX_FILES)))
    done = 0

    async def work() -> None:
        nonlocal done
        for at in turns:
            if time.monotonic() > ends_at:
                return
            shown = workspace.show(files[at])
            try:
                language, answer = await ask_about(session, workspace, files[at], word, wants_symbols=False)
                found[at] = [ReferenceSite(shown, language, one) for one in answer.occurrences]
            except NoGrammar:
                pass
            except NotParsed as error:
                problems.append(f"{shown}: {error}")
            done += 1
            report(done, len(files))

    async with asyncio.TaskGroup() as group:
        for _ in range(PARALLEL):
            group.create_task(work())
    return [one for places in found for one in places], problems, len(files) - done


def _judge_all(
    places: Sequence[ReferenceSite],
    wanted: Sequence[ReferenceSite],
    others: Sequence[ReferenceSite],
    *,
    in_text: bool,
    is_qualified: bool,
) -> tuple[list[Reference], int]:
    importing: dict[str, Certainty] = {}
    for one in places:
        if one.at.kind == "import" and importing.get(one.path) != "sure":
            certainty = judge(one, wanted, others, None)
            if certainty in ("sure", "likely"):
                importing[one.path] = certainty
    found: list[Reference] = []
    local = 0
    for one in places:
        if one.at.role == "text":
            if in_text:
                found.append(Reference(one, "possible"))
        elif one.at.role == "reference":
            certainty = judge(one, wanted, others, importing.get(one.path))
            if one.at.is_local and certainty is None:
                local += 1
            elif certainty is not None and (wanted or not is_qualified):
                found.append(Reference(one, certainty if wanted else "possible"))
    return found, local


_TIMEOUT_S = 60.0
_CHUNK = 1_000
_WORD = re.compile(r"\w+")
_OPTIONS = (
    *("--no-config", "--no-messages", "--files-with-matches", "--null", "--fixed-strings", "--case-sensitive"),
    *("--hidden", "--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--color=never"),
    *("--max-filesize", str(MAX_SOURCE_BYTES)),
    *(f"--glob=!{name}" for name in sorted(VERSION_CONTROL)),
)


async def files_with(
    session: CodeSession, workspace: Workspace, patterns: Sequence[str], word: str
) -> tuple[list[WorkspacePath], str]:
    """Files in a language that has a name, in order, and the engine that looked, with its version."""
    # A program of the project is code of the project; this only reads.
    engine = find_engine("rg", workspace, workspace.base, session.environ, origins=("path", "dari"))
    if engine is None:
        return await asyncio.to_thread(_read_all, workspace, patterns, word), "python"
    folders, files = await asyncio.to_thread(_split, workspace, patterns)
    found: set[WorkspacePath] = set()
    for places in (folders, *(files[at : at + _CHUNK] for at in range(0, len(files), _CHUNK))):
        if places:
            found.update(await _ripgrep(session, workspace, engine, places, word))
    return sorted(found), f"ripgrep {await version_of(session, engine, workspace.base)}".rstrip()


def _split(workspace: Workspace, patterns: Sequence[str]) -> tuple[list[WorkspacePath], list[WorkspacePath]]:
    """Folders for ripgrep to walk, and single files: those that were named, and those of globs."""
    folders: list[WorkspacePath] = []
    files: list[WorkspacePath] = []
    for pattern in patterns or (".",):
        place = workspace.locate(pattern)
        if place.absolute.is_dir():
            folders.append(place)
        else:
            files += workspace.files([pattern])
    return folders, files


async def _ripgrep(
    session: CodeSession, workspace: Workspace, engine: EngineProgram, places: Sequence[WorkspacePath], word: str
) -> list[WorkspacePath]:
    whole = ("--word-regexp",) if _WORD.fullmatch(word) else ()
    arguments = (*_OPTIONS, *whole, "--", word, *(str(one.absolute) for one in places))
    run = await session.run(
        engine, arguments, workspace.base, timeout_s=_TIMEOUT_S, max_output_bytes=64 << 20, is_single=True
    )
    if run.returncode not in (0, 1) and not run.stdout:
        raise InvalidInput(f"ripgrep failed: {run.stderr.strip()[:300]}", "narrow paths")
    named = set(places)
    found = []
    for name in run.stdout.split(b"\0"):
        if not name:
            continue
        path = _inside(workspace, places, os.fsdecode(name))
        if path is not None and (path in named or _is_wanted(path)):
            found.append(path)
    return found


def _inside(workspace: Workspace, places: Sequence[WorkspacePath], name: str) -> WorkspacePath | None:
    """ripgrep follows no links, so a name below a place is a file there."""
    for place in places:
        root = str(place.root)
        if name.startswith(f"{root}/"):
            return WorkspacePath(place.root, name[len(root) + 1 :])
    return None


def _is_wanted(path: WorkspacePath) -> bool:
    *folders, name = path.names
    if any(one in VERSION_CONTROL or is_secret_folder(one) for one in folders) or is_secret_name(name):
        return False
    return has_language(name)


def _read_all(workspace: Workspace, patterns: Sequence[str], word: str) -> list[WorkspacePath]:
    wanted = word.encode()
    found = []
    for path in workspace.files(patterns, wants=has_language):
        try:
            if wanted in workspace.read(path, MAX_SOURCE_BYTES):
                found.append(path)
        except (DariError, OSError):
            continue  # too large, removed since, or not ours to read
    return sorted(found)
