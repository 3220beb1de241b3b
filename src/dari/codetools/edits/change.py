"""A change of a file before it is made: its content before and after, its diff, and the hash of a whole plan."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Sequence

from msgspec import Struct

from dari.codetools.workspace import Workspace, WorkspacePath
from dari.text.sanitize import escape_hidden

MAX_DIFF_CHARS = 60_000
"""Of all files of one result; what is left out is said, and counted in added and removed."""
_CONTEXT_LINES = 3
_MAX_MISSES = 20
_MAX_COUNTED = 500
"""Files whose lines are counted: a diff costs time, too."""
_ENTRY_CHARS = 40
"""Of an entry in JSON, besides its texts."""
_MAX_DIFF_LINES = 20_000
"""Between the first and the last line that differ."""


class FileChange(Struct, frozen=True):
    """`before` is None for a file that is made, `after` for one that is removed."""

    path: WorkspacePath
    before: bytes | None
    after: bytes | None
    like: WorkspacePath | None = None
    """A new file takes mode, owner and attributes of this one: it was moved from there."""


class FileEdit(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A change as the caller reads it."""

    path: str
    diff: str = ""
    """Unified; left out where it was written, the budget of the result was used up, or the file is not text."""
    added: int = 0
    removed: int = 0
    note: str = ""


def hash_plan(changes: Iterable[FileChange]) -> str:
    """The same for the same changes of the same files, and for no other: what `expectHash` is compared with."""
    digest = hashlib.sha256()
    for change in sorted(changes, key=lambda one: one.path):
        for part in (str(change.path.absolute).encode("utf-8", "surrogateescape"), change.before, change.after):
            digest.update(b"-" if part is None else b"%d:" % len(part))
            digest.update(part or b"")
    return digest.hexdigest()[:32]


def to_edits(
    changes: Sequence[FileChange], workspace: Workspace, max_diff_chars: int = MAX_DIFF_CHARS
) -> list[FileEdit]:
    """The diffs in the order of the changes, as far as the budget goes."""
    edits = []
    left, misses = max_diff_chars, 0
    for change in changes:
        if misses == _MAX_MISSES:  # a diff costs time, too
            edits.append(FileEdit(workspace.show(change.path), "", note="diff left out"))
            continue
        edit = to_edit(change, workspace.show(change.path))
        if len(edit.diff) > left:
            misses += 1
            note = f"diff left out: {len(edit.diff)} characters; ask for this file alone"
            edit = FileEdit(edit.path, "", edit.added, edit.removed, note)
        left -= len(edit.diff)
        edits.append(edit)
    return edits


def to_counts(changes: Sequence[FileChange], workspace: Workspace) -> list[FileEdit]:
    """What was written, without the diffs: a dry run shows those."""
    edits = []
    for at, change in enumerate(changes):
        name = workspace.show(change.path)
        edit = to_edit(change, name) if at < _MAX_COUNTED else FileEdit(name)
        edits.append(FileEdit(name, "", edit.added, edit.removed, edit.note))
    return edits


def fit_edits(edits: Sequence[FileEdit], max_tokens: int) -> tuple[list[FileEdit], int]:
    """As many entries as `max_tokens` hold at four characters each, and how many more there are."""
    left = max_tokens * 4 + _ENTRY_CHARS
    for at, edit in enumerate(edits):
        left -= len(edit.path) + len(edit.diff) + len(edit.note) + _ENTRY_CHARS
        if left < 0:
            return list(edits[: max(at, 1)]), len(edits) - max(at, 1)
    return list(edits), 0


def to_edit(change: FileChange, name: str) -> FileEdit:
    note = "new file" if change.before is None else "removed" if change.after is None else ""
    before, after = _lines(change.before), _lines(change.after)
    if before is None or after is None:
        return FileEdit(name, "", note=note or "not text: no diff")
    rows = list(_diff(before, after, name))
    if not rows:
        return FileEdit(name, "", note=note or f"too large for a diff: {len(before)} lines before, {len(after)} after")
    added = sum(row.startswith("+") for row in rows[2:])
    removed = sum(row.startswith("-") for row in rows[2:])
    return FileEdit(name, "".join(rows), added, removed, note)


def _diff(before: list[str], after: list[str], name: str) -> Iterable[str]:
    """Lines that both have at the start and at the end are set aside first: difflib is quadratic in the rest."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    first = max(0, head - _CONTEXT_LINES)
    last_before = len(before) - max(0, tail - _CONTEXT_LINES)
    last_after = len(after) - max(0, tail - _CONTEXT_LINES)
    if max(last_before, last_after) - first > _MAX_DIFF_LINES:
        return
    rows = difflib.unified_diff(
        before[first:last_before], after[first:last_after], _quote(f"a/{name}"), _quote(f"b/{name}"), n=_CONTEXT_LINES
    )
    for row in rows:
        text = _shift(row, first) if row.startswith("@@") else row
        yield text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _quote(name: str) -> str:
    """As git does it: a name with a line break or a character that reverses text must not forge lines of a diff."""
    safe = escape_hidden(name, one_line=True)
    return safe if safe == name and '"' not in name else f'"{safe}"'


def _shift(row: str, by: int) -> str:
    """The line numbers of a hunk, of the whole file."""
    _, old, new, *_ = row.split()
    return f"@@ -{_shifted(old[1:], by)} +{_shifted(new[1:], by)} @@\n"


def _shifted(span: str, by: int) -> str:
    start, comma, count = span.partition(",")
    return f"{int(start) + by}{comma}{count}"


def _lines(data: bytes | None) -> list[str] | None:
    r"""None where it is not text. Only \n ends a line here, so that a diff shows what happens to the others."""
    if data is None:
        return []
    if b"\0" in data[:8000]:
        return None
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
