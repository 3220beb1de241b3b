"""Questions to the audit log, answered newest first, without reading more than they need."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from mmap import ACCESS_READ, mmap
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct

from dari.core.audit.files import LogFile, lines, log_files, placed_lines_backwards
from dari.core.audit.record import AuditRecord, Outcome, RecordKind, decode, part_of
from dari.core.audit.verify import records_backwards
from dari.errors import InvalidInput

MAX_READ_RECORDS = 50_000
"""Of one search: about half a second. The cursor that comes back goes on from there."""
_BREATH = 512
_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Matches a record that agrees with all that is given; `server`, `tool` and `who` are globs. Times need a zone."""

    part: str | None = None
    server: str | None = None
    tool: str | None = None
    who: str | None = None
    not_who: str | None = None
    """A glob of callers to leave out."""
    outcome: Outcome | None = None
    kind: RecordKind | None = None
    session: str | None = None
    text: str | None = None
    """Anywhere in names, arguments, errors and details; capitals do not count."""
    since: datetime | None = None
    until: datetime | None = None

    def match(self, record: AuditRecord) -> bool:
        return (
            (self.since is None or record.at >= self.since)
            and (self.until is None or record.at < self.until)
            and (self.outcome is None or record.outcome == self.outcome)
            and (self.kind is None or record.kind == self.kind)
            and (self.session is None or record.session == self.session)
            and (self.part is None or part_of(record) == self.part)
            and (self.server is None or fnmatchcase(record.server, self.server))
            and (self.tool is None or fnmatchcase(record.tool, self.tool))
            and (self.who is None or fnmatchcase(record.who, self.who))
            and (self.not_who is None or not fnmatchcase(record.who, self.not_who))
            and (self.text is None or self.text.casefold() in _all_text(record))
        )

    def needles(self) -> list[bytes]:
        """What every line of such a record holds: a line without one need not be parsed."""
        exact = {"session": self.session, "outcome": self.outcome}
        exact |= {name: value for name in ("server", "tool", "who") if (value := getattr(self, name)) is not None}
        found = [
            b'"%s":%s' % (name.encode(), msgspec.json.encode(value))
            for name, value in exact.items()
            if value and not _GLOB & set(value)
        ]
        return [*found, b'"kind":"%s"' % self.kind.encode()] if self.kind not in (None, "call") else found


def query(directory: Path, *, limit: int = 100, **fields: object) -> list[AuditRecord]:
    """Records that match all that is given (the fields of a `RecordFilter`)."""
    wanted = RecordFilter(**fields)  # type: ignore[arg-type]
    found: list[AuditRecord] = []
    for record in records_backwards(directory, first_day(wanted)):
        if len(found) >= limit:
            break
        if wanted.match(record):
            found.append(record)
    return found


def first_day(wanted: RecordFilter) -> str:
    """A record may stand in a file of the day before its own: the writer never goes back, and clocks do."""
    return (wanted.since - timedelta(days=1)).date().isoformat() if wanted.since is not None else ""


class RecordPage(Struct, frozen=True, kw_only=True):
    records: list[AuditRecord]
    next: str = ""
    """Goes on where this page ended; empty when there is nothing before it."""
    read: int = 0
    """Records that were looked at."""


def search(
    directory: Path, wanted: RecordFilter, *, cursor: str = "", limit: int = 100, max_read: int = MAX_READ_RECORDS
) -> RecordPage:
    """Records newest first, from where `cursor` says. Reads `max_read` records at most; for a thread."""
    found: list[AuditRecord] = []
    needles, read = wanted.needles(), 0
    for file, start, line in _placed_lines(directory, cursor, first_day(wanted)):
        read += 1
        if read % _BREATH == 0:
            time.sleep(0)  # the event loop has a turn
        if all(needle in line for needle in needles) and (record := _parse(line)) is not None and wanted.match(record):
            found.append(record)
        if len(found) >= limit or read >= max_read:
            return RecordPage(records=found, next=f"{file.day}.{file.part}:{start}", read=read)
    return RecordPage(records=found, read=read)


def record_at(directory: Path, number: int) -> AuditRecord | None:
    """The record of this number, found by halving; None when there is none."""
    for file in reversed(log_files(directory)):
        first = next((_parse(line) for line in lines(file.path)), None)
        if first is not None and first.n <= number:
            return first if first.n == number else _halve(file.path, number)
    return None


def _halve(path: Path, number: int) -> AuditRecord | None:
    with path.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
        low, high = 0, data.rfind(b"\n") + 1
        while low < high:
            start = data.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = data.find(b"\n", start)
            record = _parse(data[start:end])
            if record is None:
                return None  # a broken log: `verify` is for that
            if record.n == number:
                return record
            if record.n < number:
                low = end + 1
            else:
                high = start
    return None


def _placed_lines(directory: Path, cursor: str, since_day: str) -> Iterator[tuple[LogFile, int, bytes]]:
    place = _read_cursor(cursor) if cursor else None
    for file in reversed(log_files(directory)):
        if file.day < since_day:
            return
        before = None
        if place is not None:
            if (file.day, file.part) > place[:2]:
                continue
            before = place[2] if (file.day, file.part) == place[:2] else None
        for start, line in placed_lines_backwards(file.path, before):
            yield file, start, line


def _read_cursor(cursor: str) -> tuple[str, int, int]:
    name, _, start = cursor.rpartition(":")
    day, _, part = name.rpartition(".")
    if not (start.isdigit() and part.isdigit() and len(day) == 10 and len(cursor) < 60):
        raise InvalidInput(f"cursor must be one that a search returned, got {cursor[:60]!r}", "search without one")
    return day, int(part), int(start)


def _parse(line: bytes) -> AuditRecord | None:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _all_text(record: AuditRecord) -> str:
    given = b"" if record.arguments is UNSET else bytes(record.arguments)
    names = f"{record.who} {record.server} {record.tool} {record.session} {record.error} "
    detail = msgspec.json.encode(record.detail) if record.detail else b""
    return (names + given.decode(errors="replace") + detail.decode(errors="replace")).casefold()
