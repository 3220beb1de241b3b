"""`crewx_tools_diff`: what changed here, with the functions touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from dari.codetools.diff.comparison import TreeComparison, compare
from dari.codetools.diff.git import OutputTooLarge
from dari.codetools.diff.patch import LINK, Patch, RawChange
from dari.codetools.diff.snapshot import is_secret
from dari.codetools.diff.touched import TouchedSymbol, symbols_of
from dari.codetools.engines.versions import version_of
from dari.codetools.paging import decode_cursor, encode_cursor
from dari.codetools.session import CodeSession
from dari.core.context import Context
from dari.core.tool import tool
from dari.syntax.node_kinds import VALUES

TIMEOUT_S = 300.0
CHARS_PER_TOKEN = 4
BATCH = 40
"""Files whose content is looked at together."""
MAX_SYMBOLS = 40
_HUNK_HEAD = re.compile(r"^(@@ -\S+ \+\S+ @@) .*$", re.MULTILINE)
_FILE_CHARS = 60
_SYMBOL_CHARS = 40


class DiffSymbol(Struct, frozen=True, omit_defaults=True):
    name: str
    kind: str
    line: int
    how: str = "changed"
    """added or removed; left out for changed, and where the whole file came or went."""


class DiffFile(Struct, frozen=True, rename="camel", omit_defaults=True):
    path: str
    status: str
    """added, modified, deleted, renamed, copied, typechange, conflict, untracked, submodule."""
    added: int = 0
    removed: int = 0
    old_path: str = ""
    symbols: list[DiffSymbol] = []
    diff: str = ""
    note: str = ""


class DiffTotals(Struct, frozen=True):
    files: int
    added: int
    removed: int


class DiffResult(Struct, frozen=True, omit_defaults=True):
    since: str
    """What it is compared with."""
    totals: DiffTotals
    files: list[DiffFile] = []
    cursor: str = ""
    """Send it back for the next files."""
    note: str = ""
    engine: str = ""


class DiffTools:
    prefix = "crewx_tools"

    def __init__(self, session: CodeSession) -> None:
        self._session = session

    @tool(camel_case=True, timeout_s=TIMEOUT_S, output="code")
    async def diff(
        self,
        caller: Context,
        since: Annotated[
            str,
            Meta(
                description="a commit, branch or tag; a time such as '2 hours ago' or 2026-01-31T12:00; 'session' for "
                "since this session began",
                min_length=1,
                max_length=300,
            ),
        ] = "HEAD",
        paths: Annotated[list[str], Meta(description="files, folders and globs; everything without")] = [],  # noqa: B006
        context: Annotated[int, Meta(description="unchanged lines around each change", ge=0, le=50)] = 3,
        stat_only: Annotated[bool, Meta(description="files, counts and symbols without the diffs")] = False,
        max_tokens: Annotated[int, Meta(description="size of the result", ge=100, le=100_000)] = 6000,
        cursor: Annotated[str | None, Meta(description="cursor of the page before")] = None,
        root: Annotated[str | None, Meta(description="folder that paths are relative to")] = None,
    ) -> DiffResult:
        """Show what changed (staged or not, untracked, committed since) with the functions touched; returns {files}."""
        question = (since, paths, context, stat_only, root)
        start = decode_cursor(cursor, *question)
        workspace = await self._session.workspace(caller, root)
        async with compare(self._session, workspace, since, paths) as comparison:
            files = await self._page(comparison, start, context, stat_only, max_tokens * CHARS_PER_TOKEN)
            changes = comparison.changes
            end = start + len(files)
            return DiffResult(
                comparison.base.label,
                DiffTotals(len(changes), sum(one.added for one in changes), sum(one.removed for one in changes)),
                files,
                encode_cursor(end, *question) if end < len(changes) else "",
                comparison.note,
                await self._engine(comparison),
            )

    async def _engine(self, comparison: TreeComparison) -> str:
        if comparison.git is None:
            return ""
        return f"git {await version_of(self._session, comparison.git.engine, comparison.top)}".rstrip()

    async def _page(
        self, comparison: TreeComparison, start: int, context_lines: int, stat_only: bool, budget: int
    ) -> list[DiffFile]:
        """At least one file, then as many as the budget holds."""
        files: list[DiffFile] = []
        for at in range(start, len(comparison.changes), BATCH):
            batch = comparison.changes[at : at + BATCH]
            patches, problem = await _patches(comparison, batch, context_lines)
            touched = await symbols_of(self._session, comparison, batch, patches)
            for one in batch:
                patch = None if stat_only else patches.get(one.path)
                file = _file(comparison, one, patch, touched.get(one.path, []), budget, problem)
                size = _size(file)
                if files and size > budget:
                    return files
                files.append(file)
                budget -= size
        return files


async def _patches(
    comparison: TreeComparison, changes: Sequence[RawChange], context_lines: int
) -> tuple[dict[bytes, Patch], str]:
    shown = [one for one in changes if not is_secret(one.path) and not is_secret(one.old_path)]
    try:
        return await comparison.patches(shown, context_lines), ""
    except OutputTooLarge:
        return {}, "the diff is too large: name this file in paths"


def _file(
    comparison: TreeComparison,
    one: RawChange,
    patch: Patch | None,
    touched: Sequence[TouchedSymbol],
    budget: int,
    problem: str,
) -> DiffFile:
    status = "untracked" if one.path in comparison.untracked and one.status == "added" else one.status
    if one.status in ("added", "deleted"):  # all of it came or went: name what a reader looks for
        touched = [replace(each, how="changed") for each in touched if each.kind not in VALUES]
    symbols = [DiffSymbol(each.name, each.kind, each.line, each.how) for each in touched[:MAX_SYMBOLS]]
    notes = [_note(one), problem if not one.is_binary else ""]
    if len(touched) > MAX_SYMBOLS:
        notes.append(f"{len(touched) - MAX_SYMBOLS} more symbols")
    left = budget - _FILE_CHARS - sum(_SYMBOL_CHARS + len(each.name) for each in symbols)
    diff = patch.text if patch is not None else ""
    if symbols:  # they say which function it is; git's guess is often the one before
        diff = _HUNK_HEAD.sub(r"\1", diff)
    if len(diff) > max(left, 0):
        diff, cut = _cut(diff, max(left, 200))
        notes.append(f"{cut} more lines of diff: raise maxTokens or name this file in paths")
    return DiffFile(
        comparison.show(one.path),
        status,
        one.added,
        one.removed,
        comparison.show(one.old_path) if one.old_path != one.path else "",
        symbols,
        diff,
        "; ".join(note for note in notes if note),
    )


def _note(one: RawChange) -> str:
    if one.is_binary:
        return "binary"
    if one.status == "submodule":
        return "another commit of the submodule"
    if is_secret(one.path) or is_secret(one.old_path):
        return "content left out: the name is one of secrets"
    if LINK in (one.old_mode, one.new_mode):
        return "a symbolic link"
    if one.old_mode and one.new_mode and one.old_mode != one.new_mode and one.status in ("modified", "renamed"):
        return f"mode {one.old_mode[-3:]} to {one.new_mode[-3:]}"
    return ""


def _cut(diff: str, limit: int) -> tuple[str, int]:
    """At the end of a line."""
    end = diff.rfind("\n", 0, limit)
    kept = diff[: end if end > 0 else limit]
    return kept, diff.count("\n") - kept.count("\n") + (end <= 0)


def _size(file: DiffFile) -> int:
    symbols = sum(_SYMBOL_CHARS + len(one.name) for one in file.symbols)
    # A line end is two characters in JSON.
    return _FILE_CHARS + len(file.path) + len(file.note) + symbols + len(file.diff) + file.diff.count("\n")
