"""The audit log of the hub: records in a chain of hashes.

A few times a second the writer's thread writes what has come together, so `kill -9` loses less than a second. When the
disk does not take the records they are kept and tried again; soon after, and when the queue is full, calls are refused:
what cannot be recorded is not done.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import UNSET, Raw

from dari.core.audit.files import Head, LogFile, log_files, open_appending, write_head
from dari.core.audit.record import FIRST_PREV_HASH, AuditRecord, PendingRecord, RecordKind, hash_of
from dari.core.audit.verify import end_of_chain, last_record_of, repair
from dari.core.audit.writer import BREATH, MAX_QUEUED_RECORDS, RETRY_S, RecordWriter, append_all, encode_safely
from dari.errors import Conflict, Unavailable
from dari.paths import private_dir

Listener = Callable[[Sequence[AuditRecord]], None]
BATCH_S = 0.2
GRACE_S = 5.0
"""So long a disk may fail before calls are refused."""
MAX_EXCESS_RECORDS = 10_000
"""Calls that were let through before the queue was full still have to be recorded."""


class AuditLog(RecordWriter):
    """One writer per directory."""

    def __init__(
        self,
        directory: Path,
        *,
        max_file_bytes: int = 64 * 1024 * 1024,
        keep_days: int | None = 90,
        batch_s: float = BATCH_S,
        retry_s: float = RETRY_S,
        grace_s: float = GRACE_S,
        max_queued: int = MAX_QUEUED_RECORDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.directory = private_dir(directory)
        self._grace_s, self._limit = grace_s, max_queued
        self._lock = _locked(self.directory)
        try:
            torn = repair(self.directory)
            last, damage = end_of_chain(self.directory)
            chain = ChainFile(self.directory, last, max_file_bytes=max_file_bytes, keep_days=keep_days)
        except BaseException:
            os.close(self._lock)
            raise
        most = max_queued + MAX_EXCESS_RECORDS
        super().__init__(chain, "audit-log", batch_s=batch_s, retry_s=retry_s, max_queued=most, now=now)
        self._is_closed = False
        self._chain = chain
        if torn:
            self.note("repaired", bytes=torn)
        if damage:
            self.note("repaired", why=damage)
        self.note("opened", pid=os.getpid())

    def note(self, kind: RecordKind, *, server: str = "", tool: str = "", who: str = "", **detail: Any) -> None:
        """Record a decision of a person, or something about the log itself."""
        self.add_all([PendingRecord(at=self.now(), kind=kind, server=server, tool=tool, who=who, detail=detail)])

    def note_decision(self, *, server: str, tool: str, who: str, session: str, **detail: Any) -> None:
        """Record what was decided about a call; `session` is the caller's, whose timeline it belongs to."""
        record = PendingRecord(
            at=self.now(), kind="decision", server=server, tool=tool, who=who, session=session, detail=detail
        )
        self.add_all([record])

    def refuse(self, who: str, *, pid: int | None, reason: str, **detail: Any) -> None:
        """Record that something which only a person may do was refused to a caller."""
        detail = {"event": "refused", **detail, "pid": pid, "reason": reason}
        self.add_all([PendingRecord(at=self.now(), kind="decision", outcome="denied", who=who, detail=detail)])

    def hold(self, server: str, tool: str, *, who: str, session: str, arguments: bytes, error: str, pid: int) -> None:
        """Record that a call of another process waits for a person. That process records the call itself, and `who`
        is what it says; `pid` is what the kernel says."""
        record = PendingRecord(
            at=self.now(),
            kind="decision",
            server=server,
            tool=tool,
            outcome="held",
            who=who,
            session=session,
            arguments=Raw(arguments) if arguments else UNSET,
            error=error,
            detail={"event": "approval asked", "pid": pid},
        )
        self.add_all([record])

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every batch of records that is written, in the thread that writes them; it must be
        quick. Call what is returned to stop."""
        key = object()
        self._chain.listeners = {**self._chain.listeners, key: listener}

        def stop() -> None:
            self._chain.listeners = {each: one for each, one in self._chain.listeners.items() if each is not key}

        return stop

    def take_over(self, records: list[PendingRecord], file: str) -> bool:
        """Write the records of a spool, in one batch that ends with a record of its name; False when it has to wait."""
        if self.queued >= self._limit:
            return False
        detail = {"file": file, "records": len(records)}
        self.add_all([*records, PendingRecord(at=self.now(), kind="spooled", detail=detail)])
        return True

    def check(self) -> None:
        """Raise if a call could not be recorded now; a gateway asks before it makes one."""
        since_s = self.failing_since_s
        is_failing = since_s is not None and time.monotonic() - since_s >= self._grace_s
        if is_failing or len(self._queue) >= self._limit:
            raise Unavailable(
                f"the audit log in {self.directory} cannot be written: {self.problem or 'it cannot keep up'}",
                "free disk space or correct its permissions; calls go on by themselves",
            )

    def close(self) -> None:
        """Write what is left and let the directory go."""
        if self._is_closed:
            return
        self._is_closed = True
        self.note("closed")
        super().close()
        os.close(self._lock)


def _locked(directory: Path) -> int:
    file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        raise Conflict(
            f"another process writes the audit log in {directory}", "only one daemon may; stop the other"
        ) from error
    return file


SYNC_S = 1.0


class ChainFile:
    """The sink of the log."""

    def __init__(
        self,
        directory: Path,
        last: Head | None,
        *,
        max_file_bytes: int,
        keep_days: int | None,
    ) -> None:
        self._directory = directory
        self._max_file_bytes = max_file_bytes
        self._keep_days = keep_days
        self._last = last or Head(0, FIRST_PREV_HASH)
        self._file: LogFile | None = None
        self._fd = -1
        self._size = 0
        self._unsynced_since: float | None = None
        self.listeners: dict[object, Listener] = {}

    def write(self, batch: Sequence[PendingRecord]) -> None:
        self._turn_page(batch[0].at)
        self._append(batch)
        if self._unsynced_since is None:
            self._unsynced_since = time.monotonic()

    def sync_in_s(self) -> float | None:
        if self._unsynced_since is None:
            return None
        return max(0.0, self._unsynced_since + SYNC_S - time.monotonic())

    def sync(self) -> None:
        if self._unsynced_since is None:
            return
        os.fsync(self._fd)
        # Only after the records: a head that is ahead of them would accuse somebody of removing some.
        write_head(self._directory, self._last)
        self._unsynced_since = None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _turn_page(self, at: float) -> None:
        """Have the right file open: of the day, not too large, and not deleted under our hands."""
        day = datetime.fromtimestamp(at, UTC).date().isoformat()
        if self._file is None:
            files = log_files(self._directory)
            self._open(files[-1] if files and files[-1].day >= day else LogFile.at(self._directory, day))
            self._prune(at, day)
        assert self._file is not None
        if os.fstat(self._fd).st_nlink == 0:
            self._open(self._file)
            self._write_own(at, "reopened", {"why": "the file had been removed"})
        if day > self._file.day:
            self._open(LogFile.at(self._directory, day))
            self._prune(at, day)
        elif self._size >= self._max_file_bytes:
            self._open(self._file.next())

    def _open(self, file: LogFile) -> None:
        fd = open_appending(file.path)
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
        self._file, self._fd, self._size = file, fd, os.fstat(fd).st_size

    def _prune(self, at: float, day: str) -> None:
        if self._keep_days is None:
            return
        oldest = (date.fromisoformat(day) - timedelta(days=self._keep_days)).isoformat()
        gone = [file for file in log_files(self._directory) if file.day < oldest]
        last = next((head for file in reversed(gone) if (head := last_record_of(file.path)) is not None), None)
        if last is not None:
            detail = {"n": last.n, "hash": last.hash, "files": [file.path.name for file in gone]}
            self._write_own(at, "pruned", detail)
            os.fsync(self._fd)
        for file in gone:
            file.path.unlink(missing_ok=True)

    def _write_own(self, at: float, kind: RecordKind, detail: dict[str, Any]) -> None:
        self._append([PendingRecord(at=at, kind=kind, detail=detail)])

    def _append(self, batch: Sequence[PendingRecord]) -> None:
        n, prev, data = self._last.n, self._last.hash, bytearray()
        listeners, written = self.listeners.values(), []
        for number, pending in enumerate(batch, 1):
            n += 1
            record = pending.numbered(n, prev)
            line = encode_safely(record)
            if listeners:
                written.append(record)
            prev = hash_of(line)
            data += line
            data += b"\n"
            if number % BREATH == 0:
                time.sleep(0)
        append_all(self._fd, data, self._size)
        self._size += len(data)
        self._last = Head(n, prev)
        for listener in listeners:
            listener(written)
