"""The definitions of files, fitted into a budget: first the docs go, then the depth, then the last files."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dari.syntax.analysis import Answer, Symbol

CHARS_PER_TOKEN = 4
_ENTRY_CHARS = 34
"""Keys, quotes and commas of one symbol."""
_FILE_CHARS = 60


class OutlineSymbol(Struct, frozen=True, omit_defaults=True):
    name: str
    """Qualified: Class.method."""
    kind: str
    lines: str
    """First and last line, such as 10-24."""
    signature: str = ""
    doc: str = ""
    """The first line of its docstring or comment."""


class FileOutline(Struct, frozen=True, rename="camel", omit_defaults=True):
    path: str
    language: str = ""
    symbols: list[OutlineSymbol] = []
    note: str = ""
    """Why something is missing: an unknown language, code that does not parse, a budget."""


class Reading(Struct, frozen=True):
    """A file and what the parser said of it; a problem where it said nothing."""

    path: str
    language: str = ""
    answer: Answer | None = None
    problem: str = ""


class Detail(Struct, frozen=True):
    depth: int
    has_docs: bool
    has_signatures: bool = True


def fit_outline(readings: Sequence[Reading], depth: int, max_tokens: int) -> tuple[list[FileOutline], str]:
    """The outlines with as much detail as the budget holds, and in words what it does not hold."""
    budget = max_tokens * CHARS_PER_TOKEN
    details = [Detail(depth, True), *(Detail(level, False) for level in range(depth, 0, -1)), Detail(1, False, False)]
    for detail in details:
        files = [_outline(one, detail) for one in readings]
        if sum(map(_size, files)) <= budget:
            return files, _said(detail, details[0])
    return _cut(files, budget)


def _said(detail: Detail, asked: Detail) -> str:
    if detail == asked:
        return ""
    left = "docs" if detail.depth == asked.depth else f"docs and what is deeper than {detail.depth}"
    return f"{left}{'' if detail.has_signatures else ' and signatures'} left out: raise maxTokens or name fewer files"


def _outline(reading: Reading, detail: Detail) -> FileOutline:
    answer = reading.answer
    if answer is None:
        return FileOutline(reading.path, reading.language, note=f"not parsed: {reading.problem}")
    notes = []
    if answer.has_errors:
        notes.append("it has syntax errors: what could be read")
    if answer.is_partial:
        notes.append("only its beginning was read")
    symbols = [_symbol(one, detail) for one in answer.symbols if one.depth <= detail.depth]
    return FileOutline(reading.path, reading.language, symbols, "; ".join(notes))


def _symbol(one: Symbol, detail: Detail) -> OutlineSymbol:
    lines = str(one.line) if one.end_line == one.line else f"{one.line}-{one.end_line}"
    return OutlineSymbol(
        one.symbol,
        one.kind,
        lines,
        one.signature if detail.has_signatures and one.signature != one.symbol else "",
        one.doc if detail.has_docs else "",
    )


def _size(file: FileOutline) -> int:
    return _FILE_CHARS + len(file.path) + len(file.note) + sum(map(_symbol_size, file.symbols))


def _symbol_size(one: OutlineSymbol) -> int:
    extra = (len(one.signature) + 15 if one.signature else 0) + (len(one.doc) + 9 if one.doc else 0)
    return _ENTRY_CHARS + len(one.name) + len(one.kind) + len(one.lines) + extra


def _cut(files: Sequence[FileOutline], budget: int) -> tuple[list[FileOutline], str]:
    kept: list[FileOutline] = []
    for at, file in enumerate(files):
        size = _size(file)
        if size <= budget:
            kept.append(file)
            budget -= size
            continue
        symbols: list[OutlineSymbol] = []
        for one in file.symbols:
            budget -= _symbol_size(one)
            if budget < 0:
                break
            symbols.append(one)
        rest = len(file.symbols) - len(symbols)
        kept.append(FileOutline(file.path, file.language, symbols, f"{rest} more definitions at the top left out"))
        others = len(files) - at - 1
        more = f"{others} more files, " if others else ""
        return kept, f"{more}docs, signatures and what is deeper than 1 left out: raise maxTokens or name fewer files"
    return kept, ""
