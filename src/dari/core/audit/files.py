"""The files of the audit log, all 0600 in one 0700 directory.

2026-11-16.jsonl       the records of a day (UTC)
2026-11-16.0001.jsonl  the next part, when the first has become too large
head.json              number and hash of a record that is safely on disk: what is missing at the end shows
lock                   held by the one writer
*.torn                 what a crash left half written, moved out of the way
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.paths import write_private
from dari.struct_types import ready

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.(\d{4,}))?\.jsonl")


class Head(Struct, frozen=True):
    n: int
    hash: str


class LogFile(Struct, frozen=True, order=True):
    """Files sort as they were written."""

    day: str
    part: int
    path: Path

    @classmethod
    def at(cls, directory: Path, day: str, part: int = 0) -> LogFile:
        return cls(day, part, directory / (f"{day}.{part:04d}.jsonl" if part else f"{day}.jsonl"))

    def next(self) -> LogFile:
        return LogFile.at(self.path.parent, self.day, self.part + 1)


def log_files(directory: Path) -> list[LogFile]:
    """Oldest first. A symbolic link is none of ours: repairing what it leads to would cut a stranger's file."""
    found = []
    for path in directory.iterdir() if directory.is_dir() else ():
        if (named := _NAME.fullmatch(path.name)) and not path.is_symlink():
            found.append(LogFile(named[1], int(named[2] or 0), path))
    return sorted(found)


def open_appending(path: Path) -> int:
    """A file descriptor; a symbolic link in the place of the log is refused by the kernel."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_head(directory: Path) -> Head | None:
    try:
        return msgspec.json.decode((directory / "head.json").read_bytes(), type=ready(Head))
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_head(directory: Path, head: Head) -> None:
    write_private(directory / "head.json", msgspec.json.encode(head))


def lines(path: Path) -> Iterator[bytes]:
    """Whole lines from the first to the last, without their newline; a torn one at the end is left out."""
    with path.open("rb") as stream:
        for line in stream:
            if line.endswith(b"\n"):
                yield line[:-1]


def lines_backwards(path: Path) -> Iterator[bytes]:
    """Whole lines from the last to the first, without reading what is not asked for."""
    for _, line in placed_lines_backwards(path):
        yield line


def placed_lines_backwards(path: Path, before: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Whole lines with the byte at which each begins, from the last one, or from the one that ends at byte `before`."""
    with path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size == 0:
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            end = data.rfind(b"\n") if before is None else data.rfind(b"\n", 0, before)
            while end >= 0:
                start = data.rfind(b"\n", 0, end)
                yield start + 1, data[start + 1 : end]
                end = start


def torn_bytes(path: Path) -> int:
    """How many bytes stand after the last newline."""
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            return 0
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return size - data.rfind(b"\n") - 1
