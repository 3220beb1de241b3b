"""Is the log whole? `verify` finds the first broken link, `repair` takes a torn tail out of the way.

The chain shows every change to the middle, `head.json` a missing end. Who can rewrite all files can forge all of it:
note `head` somewhere else now and then, and give it to `verify` as `known`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from dari.core.audit.files import DamagedHead, Head, LogFile, lines, lines_backwards, log_files, read_head, torn_bytes
from dari.core.audit.record import FIRST_PREV_HASH, AuditRecord, decode, hash_of
from dari.paths import write_private


class BrokenLink(Struct, frozen=True):
    """The first place where the chain does not hold. `line` counts from 1; 0 is the end of the log."""

    file: str
    line: int
    why: str


class VerifyReport(Struct, frozen=True, kw_only=True):
    files: int
    records: int
    head: Head | None
    """Number and hash of the last whole record."""
    broken: BrokenLink | None = None
    has_head: bool = True
    """False where no `head.json` stands beside the records: then a missing end does not show."""
    torn: int = 0
    """Bytes of an unfinished line at the end: `repair` removes them, no record that was whole is lost."""

    @property
    def is_whole(self) -> bool:
        return self.broken is None and self.torn == 0


def verify(directory: Path, known: Head | None = None) -> VerifyReport:
    """Read everything, oldest first. `known` is a head that somebody noted earlier."""
    files = log_files(directory)
    damage: BrokenLink | None = None
    written = None
    try:
        written = read_head(directory)
    except DamagedHead as error:
        damage = BrokenLink("head.json", 1, str(error))
    walk = _Walk([head for head in (written, known) if head is not None])
    broken = next((found for file in files if (found := walk.through(file)) is not None), None)
    return VerifyReport(
        files=len(files),
        records=walk.records,
        head=walk.last,
        broken=broken or walk.missing_end() or damage,
        has_head=written is not None or damage is not None or not files,
        torn=torn_bytes(files[-1].path) if files and broken is None else 0,
    )


def repair(directory: Path) -> int:
    """Move an incomplete record off the end of the newest file into a `.torn` file; returns the bytes moved.

    Only for who holds the lock: the writer does it when it opens the log.
    """
    for file in reversed(log_files(directory)):
        size = file.path.stat().st_size
        if size == 0:
            continue
        good = size - torn_bytes(file.path)
        for line in lines_backwards(file.path):
            if _parsed(line) is not None:
                break
            good -= len(line) + 1
        if good < size:
            _move_tail(file.path, good)
        return size - good
    return 0


def end_of_chain(directory: Path) -> tuple[Head | None, str]:
    """Where the next record goes on, and what is to be said about it.

    That is the last record; or the head, where the records up to it are gone or the last one was changed: the next
    record then carries a hash that nothing before it has, and `verify` finds the place.
    """
    last, head, damage = last_record(directory), None, ""
    try:
        head = read_head(directory)
    except DamagedHead as error:
        damage = str(error)
    is_behind = head is not None and (last is None or last.n <= head.n)
    return (head if is_behind else last), damage


def last_record(directory: Path) -> Head | None:
    """Number and hash of the newest whole record."""
    for file in reversed(log_files(directory)):
        if (last := last_record_of(file.path)) is not None:
            return last
    return None


def last_record_of(path: Path) -> Head | None:
    for line in lines_backwards(path):
        if (record := _parsed(line)) is not None:
            return Head(record.n, hash_of(line))
    return None


def _move_tail(path: Path, good: int) -> None:
    with path.open("rb+") as stream:
        stream.seek(good)
        tail = stream.read()
        number = len(list(path.parent.glob(f"{path.name}.*torn")))
        write_private(path.with_name(f"{path.name}.{number}.torn"), tail)
        stream.truncate(good)
        stream.flush()
        os.fsync(stream.fileno())


def _parsed(line: bytes) -> AuditRecord | None:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class _Walk:
    """From record to record, over all files."""

    def __init__(self, heads: list[Head]) -> None:
        self.records = 0
        self.last: Head | None = None
        self._heads = {head.n: head for head in heads}
        self._first: tuple[LogFile, Head] | None = None
        """Where the log begins, when older files were pruned, and the record that must have said so."""
        self._is_vouched = False

    def through(self, file: LogFile) -> BrokenLink | None:
        for number, line in enumerate(lines(file.path), 1):
            record = _parsed(line)
            why = "no record" if record is None else self._fault(file, record)
            if record is None or why:
                return BrokenLink(file.path.name, number, why)
            self.last = Head(record.n, hash_of(line))
            self.records += 1
            head = self._heads.get(record.n)
            if head is not None and head.hash != self.last.hash:
                return BrokenLink(file.path.name, number, f"record {record.n} is not the one that was noted")
        return None

    def missing_end(self) -> BrokenLink | None:
        if self._first is not None and not self._is_vouched:
            return BrokenLink(
                self._first[0].path.name, 1, f"records up to {self._first[1].n} are gone, no record says why"
            )
        newest = max(self._heads, default=0)
        if newest > (self.last.n if self.last is not None else 0):
            return BrokenLink(
                "", 0, f"records up to {newest} were written, the last one here is {self.last and self.last.n}"
            )
        return None

    def _fault(self, file: LogFile, record: AuditRecord) -> str:
        """Empty when the record follows the one before it."""
        if self.last is None:
            if (record.n, record.prev) != (1, FIRST_PREV_HASH):
                self._first = (file, Head(record.n - 1, record.prev))
        elif record.prev != self.last.hash:
            return f"record {record.n} does not carry the hash of the one before it"
        elif record.n != self.last.n + 1:
            return f"record {record.n} follows {self.last.n}"
        if self._first is not None and record.kind == "pruned":
            # A crash may have left some of the files that it names: then the log begins before its `n`.
            n, gone = record.detail.get("n"), self._first[1]
            self._is_vouched |= isinstance(n, int) and (
                (n, record.detail.get("hash")) == (gone.n, gone.hash) or n > gone.n
            )
        return ""


def records_backwards(directory: Path, since_day: str = "") -> Iterator[AuditRecord]:
    """Whole records, newest first, of files of that day and later."""
    for file in reversed(log_files(directory)):
        if file.day < since_day:
            return
        for line in lines_backwards(file.path):
            if (record := _parsed(line)) is not None:
                yield record
