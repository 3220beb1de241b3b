"""What `git diff` prints, as data: raw records, counts of lines, and the hunks of each file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([abfnrtv\"\\]|[0-7]{3})")
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
STATUSES = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "typechange",
    "U": "conflict",
}
SUBMODULE = "160000"
LINK = "120000"


class RawChange(Struct, frozen=True):
    """One file. Paths are bytes below the top of the work tree, as git has them."""

    status: str
    path: bytes
    old_path: bytes
    old_mode: str
    new_mode: str
    old_object: str
    added: int = 0
    removed: int = 0
    is_binary: bool = False


class Patch(Struct, frozen=True):
    """The hunks of a file as text, and which lines they change, counted from 1."""

    text: str
    removed_lines: list[int]
    """Of the old content."""
    added_lines: list[int]
    """Of the new one."""
    joints: list[int]
    """Lines of the new content that something was removed before."""


def read_raw(printed: bytes) -> list[RawChange]:
    """Of `--raw --numstat -z`, in the order of git."""
    fields = printed.split(b"\0")
    at = 0
    changes: dict[tuple[bytes, bytes], RawChange] = {}
    while at < len(fields) and fields[at].startswith(b":"):
        old_mode, new_mode, old_object, _, code = fields[at][1:].decode().split(" ")
        has_two = code[0] in "RC"
        old_path = fields[at + 1]
        path = fields[at + 2] if has_two else old_path
        at += 3 if has_two else 2
        status = "submodule" if SUBMODULE in (old_mode, new_mode) else STATUSES.get(code[0], "modified")
        key = (old_path, path)
        if key not in changes or status != "conflict":
            changes[key] = RawChange(status, path, old_path, old_mode, new_mode, old_object)
    while at < len(fields) and fields[at]:
        added, removed, name = fields[at].split(b"\t", 2)
        if name:
            key = (name, name)
            at += 1
        else:
            key = (fields[at + 1], fields[at + 2])
            at += 3
        if (one := changes.get(key)) is not None:
            is_binary = added == b"-"
            counts = (0, 0) if is_binary else (int(added), int(removed))
            changes[key] = RawChange(
                one.status, one.path, one.old_path, one.old_mode, one.new_mode, one.old_object, *counts, is_binary
            )
    return list(changes.values())


def read_patches(printed: bytes) -> dict[bytes, Patch]:
    """By the path of the new content, or of the old one where a file is gone."""
    found: dict[bytes, Patch] = {}
    for section in re.split(rb"(?m)^diff --git ", printed)[1:]:
        name = _name_of(section)
        at = section.find(b"\n@@ ")
        if name is not None and at >= 0:
            found[name] = _read_hunks(section[at + 1 :])
    return found


def _name_of(section: bytes) -> bytes | None:
    old = new = None
    for line in section[: section.find(b"\n@@ ") + 1].splitlines():
        if line.startswith(b"--- "):
            old = _unquote(line[4:])
        elif line.startswith(b"+++ "):
            new = _unquote(line[4:])
    for name in (new, old):
        if name is not None and name != b"/dev/null":
            return name[2:]
    return None


def _unquote(name: bytes) -> bytes:
    name = name.removesuffix(b"\t")
    if not name.startswith(b'"'):
        return name

    def plain(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(plain, name[1:].removesuffix(b'"'))


def _read_hunks(data: bytes) -> Patch:
    removed: list[int] = []
    added: list[int] = []
    joints: list[int] = []
    old = new = 0
    for line in _lines(data):
        if (found := _HUNK.match(line)) is not None:
            old, new = int(found[1]), int(found[3])
            if found[4] == b"0":
                new += 1  # nothing is left there: the line before the hunk is named
            if found[2] == b"0":
                old += 1
        elif line.startswith(b"-"):
            removed.append(old)
            if not joints or joints[-1] != new:
                joints.append(new)
            old += 1
        elif line.startswith(b"+"):
            added.append(new)
            new += 1
        elif line.startswith(b" ") or not line:
            old += 1
            new += 1
    return Patch(data.decode("utf-8", "replace").rstrip("\n"), removed, added, joints)


def _lines(data: bytes) -> Iterator[bytes]:
    lines = data.split(b"\n")
    yield from lines[:-1] if not lines[-1] else lines
