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
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.paths import write_private
from dari.struct_types import ready

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.(\d{4,}))?\.jsonl")
_HASH = re.compile(r"[0-9a-f]{64}")


class Head(Struct, frozen=True):
    n: int
    hash: str


class DamagedHead(Exception):
    """`head.json` is there and names no record."""


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
    """Oldest first. A symbolic link is left out, since repairing what it leads to would cut a stranger's file, and so
    is what is not a file: reading a FIFO would wait for ever."""
    found = []
    for path in directory.iterdir() if directory.is_dir() else ():
        if (named := _NAME.fullmatch(path.name)) and not path.is_symlink() and path.is_file():
            found.append(LogFile(named[1], int(named[2] or 0), path))
    return sorted(found)


def open_appending(path: Path) -> int:
    """A file descriptor. A symbolic link or a FIFO in the place of the log is refused: neither keeps a record."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} must be a regular file")
    return file


def read_head(directory: Path) -> Head | None:
    """None where there is no such file; raises `DamagedHead` where it holds something else."""
    try:
        head = msgspec.json.decode((directory / "head.json").read_bytes(), type=ready(Head))
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedHead("head.json must hold the number and the hash of a record") from error
    if head.n < 1 or not _HASH.fullmatch(head.hash):
        raise DamagedHead(f"head.json must hold the number and the hash of a record, got number {head.n}")
    return head


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
