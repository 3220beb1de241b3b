"""Which definitions a change touches: its lines, looked up in the old and in the new content."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from dari.codetools.diff.comparison import TreeComparison
from dari.codetools.diff.patch import LINK, Patch, RawChange
from dari.codetools.diff.snapshot import is_secret
from dari.codetools.session import CodeSession
from dari.codetools.symbols.source import NotParsed, ask_about_bytes
from dari.errors import DariError
from dari.syntax.analysis import Symbol

MAX_PARSED_BYTES = 4 << 20
_INNER = frozenset(("variable", "constant", "field", "key"))

How = Literal["added", "changed", "removed"]


class TouchedSymbol(Struct, frozen=True):
    name: str
    kind: str
    how: How
    line: int
    """Where it begins now; of a removed one where it began."""


async def symbols_of(
    session: CodeSession, comparison: TreeComparison, changes: Sequence[RawChange], patches: dict[bytes, Patch]
) -> dict[bytes, list[TouchedSymbol]]:
    """By path; files that no grammar reads are left out."""
    parsed = [one for one in changes if _has_symbols(one) and one.path in patches]
    old_contents = await comparison.old_contents([one for one in parsed if one.status != "added"])
    found: dict[bytes, list[TouchedSymbol]] = {}
    for one in parsed:
        old = await _symbols(session, old_contents.get(one.path), one.old_path)
        new = await _symbols(session, await asyncio.to_thread(_read, comparison, one), one.path)
        if old is not None or new is not None:
            found[one.path] = match_symbols(old or [], new or [], patches[one.path])
    return found


def match_symbols(old: Sequence[Symbol], new: Sequence[Symbol], patch: Patch) -> list[TouchedSymbol]:
    """In the order of the file: what was added or changed, then what is gone."""
    before, after = {one.symbol: one for one in old}, {one.symbol: one for one in new}
    touched: dict[str, TouchedSymbol] = {}
    for one in _around(new, patch.added_lines):
        how: How = "changed" if one.symbol in before else "added"
        touched.setdefault(one.symbol, TouchedSymbol(one.symbol, one.kind, how, one.line))
    for one in _around(old, patch.removed_lines):
        if (now := after.get(one.symbol)) is not None:
            touched.setdefault(one.symbol, TouchedSymbol(one.symbol, now.kind, "changed", now.line))
        else:
            touched.setdefault(one.symbol, TouchedSymbol(one.symbol, one.kind, "removed", one.line))
    # What came or went whole says it for what is inside it.
    whole = {one.name for one in touched.values() if one.how != "changed"}
    kept = [one for one in touched.values() if not any(_is_inside(one.name, other) for other in whole)]
    return sorted(kept, key=lambda one: (one.how == "removed", one.line))


def _is_inside(name: str, other: str) -> bool:
    return name.startswith((f"{other}.", f"{other}::"))


def _around(symbols: Sequence[Symbol], lines: Iterable[int]) -> list[Symbol]:
    """For each line the innermost definition that holds it."""
    found: dict[int, Symbol] = {}
    wanted = sorted(set(lines))
    at = 0
    open_ones: list[Symbol] = []
    for line in wanted:
        while at < len(symbols) and symbols[at].line <= line:
            open_ones.append(symbols[at])
            at += 1
        open_ones = [one for one in open_ones if one.end_line >= line]
        inner = [
            one for one in open_ones if one.depth == 1 or one.kind not in _INNER or not _is_in_function(one, open_ones)
        ]
        if inner:
            deepest = max(inner, key=lambda one: (one.depth, one.line))
            found.setdefault(id(deepest), deepest)
    return list(found.values())


def _is_in_function(one: Symbol, around: Sequence[Symbol]) -> bool:
    return any(other.kind in ("function", "method") and other.depth < one.depth for other in around)


def _has_symbols(one: RawChange) -> bool:
    is_file = one.status != "submodule" and LINK not in (one.old_mode, one.new_mode)
    return is_file and not one.is_binary and not is_secret(one.path) and not is_secret(one.old_path)


async def _symbols(session: CodeSession, data: bytes | None, name: bytes) -> list[Symbol] | None:
    if data is None:
        return None
    try:
        _, answer = await ask_about_bytes(session, data, os.fsdecode(name), wants_text=False)
    except NotParsed:
        return None
    return answer.symbols


def _read(comparison: TreeComparison, one: RawChange) -> bytes | None:
    if one.status == "deleted":
        return None
    try:
        return comparison.workspace.read(comparison.place(one.path), MAX_PARSED_BYTES)
    except (DariError, OSError):
        return None
