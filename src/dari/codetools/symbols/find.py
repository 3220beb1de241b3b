"""Definitions and references of a name across files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from dari.codetools.session import CodeSession
from dari.codetools.symbols.candidates import files_with
from dari.codetools.symbols.references import Certainty, ReferenceSite, dotted, judge, matches
from dari.codetools.symbols.source import NoGrammar, NotParsed, ask_about, parser_version
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import InvalidInput

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
