"""`crewx_tools_symbols`: definitions and references of a name."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dari.codetools.paging import decode_cursor, encode_cursor
from dari.codetools.session import CodeSession
from dari.codetools.symbols.find import FoundSymbols, Reference, find_symbol
from dari.codetools.symbols.references import ReferenceSite
from dari.core.context import Context
from dari.core.tool import tool

TIMEOUT_S = 180.0
CHARS_PER_TOKEN = 4
MAX_PROBLEMS = 5
_ENTRY_CHARS = 36
_PATH_CHARS = 26
Include = Literal["definitions", "references", "both"]


class SymbolDefinition(Struct, frozen=True, omit_defaults=True):
    path: str
    line: int
    col: int
    kind: str
    symbol: str
    """Qualified: Class.method."""
    text: str
    lines: str = ""
    """First and last line of a definition of several lines, decorators included."""


class SymbolUse(Struct, frozen=True, rename={"inside": "in"}, omit_defaults=True):
    line: int
    col: int
    text: str
    inside: str = ""
    """The definition around it."""
    kind: str = "use"
    """call, import, export, inherit, write, type, parameter, argument; a use when it is left out."""
    certainty: str = "sure"
    """likely or possible where the name alone does not decide; sure when it is left out."""


class FileUses(Struct, frozen=True):
    path: str
    uses: list[SymbolUse]


class SymbolTotals(Struct, frozen=True, rename="camel", omit_defaults=True):
    definitions: int
    references: int
    files: int
    """Files that were parsed."""
    locals: int = 0
    """Parameters and local variables of the name, left out."""
    other_definitions: int = 0
    """Of the same name, but not of this qualified one."""


class SymbolsResult(Struct, frozen=True, omit_defaults=True):
    totals: SymbolTotals
    engine: str
    definitions: list[SymbolDefinition] = []
    references: list[FileUses] = []
    cursor: str = ""
    """Send it back for the next page."""
    note: str = ""


class SymbolTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(camel_case=True, timeout_s=TIMEOUT_S, output="code")
    async def symbols(
        self,
        context: Context,
        name: Annotated[
            str, Meta(description="a name, or a qualified one to narrow: Class.method, module.func", min_length=1)
        ],
        kind: Annotated[
            str | None,
            Meta(description="only this kind: function, method, class, field, constant …; call, import, write …"),
        ] = None,
        paths: Annotated[
            list[str], Meta(description="files, folders and globs to look in; the whole workspace without")
        ] = [],  # noqa: B006
        include: Annotated[Include, Meta(description="what to return")] = "both",
        in_text: Annotated[bool, Meta(description="also where it stands in comments and strings")] = False,
        limit: Annotated[int, Meta(description="most entries of a page", ge=1, le=5000)] = 200,
        max_tokens: Annotated[int, Meta(description="size of the result", ge=100, le=100_000)] = 4000,
        cursor: Annotated[str | None, Meta(description="cursor of the page before")] = None,
        root: Annotated[str | None, Meta(description="folder that paths are relative to")] = None,
    ) -> SymbolsResult:
        """Find where a name is defined and used, by syntax; returns {definitions, references, totals, cursor}."""
        question = (name, kind, paths, include, in_text, root)
        start = decode_cursor(cursor, *question)
        workspace = await self._session.workspace(context, root)

        def report(done: int, total: int) -> None:
            if not done % 50:
                context.report(done, total, f"{done} of {total} files parsed")

        found = await find_symbol(self._session, workspace, name, paths, kind=kind, in_text=in_text, report=report)
        definitions = [one for one in found.definitions if kind in (None, one.at.kind)]
        references = [one for one in found.references if kind in (None, one.place.at.kind)]
        entries: list[ReferenceSite | Reference] = []
        if include != "references":
            entries += definitions
        if include != "definitions":
            entries += references
        page = _fit(entries[start : start + limit], max_tokens * CHARS_PER_TOKEN)
        end = start + len(page)
        return SymbolsResult(
            SymbolTotals(len(definitions), len(references), found.files, found.locals, found.others),
            found.engine,
            [_definition(one) for one in page if isinstance(one, ReferenceSite)],
            _grouped([one for one in page if isinstance(one, Reference)]),
            encode_cursor(end, *question) if end < len(entries) else "",
            _note(found, name),
        )


def _fit(entries: list[ReferenceSite | Reference], budget: int) -> list[ReferenceSite | Reference]:
    """At least one, so that a page always goes on."""
    path = ""
    for at, one in enumerate(entries):
        place = one.place if isinstance(one, Reference) else one
        budget -= _ENTRY_CHARS + len(place.at.text) + len(place.at.symbol) + len(place.at.kind)
        if place.path != path or isinstance(one, ReferenceSite):
            budget -= _PATH_CHARS + len(place.path)
            path = place.path
        if budget < 0 and at:
            return entries[:at]
    return entries


def _definition(place: ReferenceSite) -> SymbolDefinition:
    at = place.at
    lines = f"{at.line}-{at.end_line}" if at.end_line > at.line else ""
    return SymbolDefinition(place.path, at.line, at.col, at.kind, at.symbol, at.text, lines)


def _grouped(references: list[Reference]) -> list[FileUses]:
    files: dict[str, list[SymbolUse]] = {}
    for one in references:
        at = one.place.at
        use = SymbolUse(at.line, at.col, at.text, at.symbol, at.kind, one.certainty)
        files.setdefault(one.place.path, []).append(use)
    return [FileUses(path, uses) for path, uses in files.items()]


def _note(found: FoundSymbols, name: str) -> str:
    notes = []
    if not found.definitions:
        hint = " (of that name, but not of that qualified one, there are some)" if found.others else ""
        notes.append(f"no definition of {name} was found{hint}")
    elif len({one.at.symbol for one in found.definitions}) > 1:
        notes.append("several definitions share the name: qualify it (Class.method, module.func) to narrow")
    if found.unread:
        notes.append(f"{found.unread} more files hold the word and were not parsed: narrow paths")
    if found.problems:
        rest = f" and {len(found.problems) - MAX_PROBLEMS} more" if len(found.problems) > MAX_PROBLEMS else ""
        notes.append(f"not parsed: {'; '.join(found.problems[:MAX_PROBLEMS])}{rest}")
    return ". ".join(notes)
