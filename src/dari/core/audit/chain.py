"""Records as lines of the log: numbered, linked, in the file of their day."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from dari.core.audit.files import Head, LogFile, log_files, open_appending, write_head
from dari.core.audit.record import FIRST_PREV_HASH, PendingRecord, RecordKind, hash_of
from dari.core.audit.verify import last_record_of
from dari.core.audit.writer import BREATH, append_all, encode_safely

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
        for number, pending in enumerate(batch, 1):
            n += 1
            line = encode_safely(pending.numbered(n, prev))
            prev = hash_of(line)
            data += line
            data += b"\n"
            if number % BREATH == 0:
                time.sleep(0)
        append_all(self._fd, data, self._size)
        self._size += len(data)
        self._last = Head(n, prev)
