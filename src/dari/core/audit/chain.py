"""Records to bytes on disk: numbered, linked, in the file of their day. Used by the one writer thread only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw

from dari.core.audit.files import Head, LogFile, log_files, open_appending, write_head
from dari.core.audit.record import FIRST_PREV_HASH, AuditRecord, Outcome, RecordKind, encode, hash_of
from dari.core.audit.verify import last_record_of

SYNC_S = 1.0
MAX_ARGUMENT_BYTES = 4096
_CUT_CHARS = 1000
_BREATH = 64

PendingRecord = tuple[
    float, RecordKind, str, str, str, Outcome | Literal[""], str, str, float, int, bytes, str, dict[str, Any] | None
]
"""Unix time, kind, part, server, tool, outcome, who, session, ms, result bytes, arguments as JSON, error, detail."""


class ChainWriter:
    def __init__(
        self,
        directory: Path,
        last: Head | None,
        redact: Callable[[bytes], bytes],
        *,
        max_file_bytes: int,
        keep_days: int | None,
    ) -> None:
        self._directory = directory
        self._redact = redact
        self._max_file_bytes = max_file_bytes
        self._keep_days = keep_days
        self._last = last or Head(0, FIRST_PREV_HASH)
        self._file: LogFile | None = None
        self._fd = -1
        self._size = 0
        self._unsynced_since: float | None = None

    def write(self, batch: Sequence[PendingRecord]) -> None:
        """Append all of them or, with an `OSError`, none: a part that was written is taken back."""
        if not batch:
            return
        self._turn_page(batch[0][0])
        last, data = self._last, bytearray()
        for number, pending in enumerate(batch, 1):
            last = self._append(data, last, pending)
            if number % _BREATH == 0:
                # The event loop would wait 5 ms for the interpreter lock; it need not, half a millisecond is enough.
                time.sleep(0)
        self._put(data, last)
        if self._unsynced_since is None:
            self._unsynced_since = time.monotonic()

    def sync_in_s(self) -> float | None:
        """Seconds until the disk should have it; None when it has."""
        if self._unsynced_since is None:
            return None
        return max(0.0, self._unsynced_since + SYNC_S - time.monotonic())

    def sync(self, *, to_disk: bool = True) -> None:
        if self._unsynced_since is None:
            return
        if to_disk:
            os.fsync(self._fd)
        # Only after the records: a head that is ahead of them would accuse somebody of removing some.
        write_head(self._directory, self._last)
        self._unsynced_since = None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _append(self, data: bytearray, last: Head, pending: PendingRecord) -> Head:
        at, kind, part, server, tool, outcome, who, session, ms, result_bytes, arguments, error, detail = pending
        record = AuditRecord(
            n=last.n + 1,
            at=datetime.fromtimestamp(at, UTC),
            kind=kind,
            part=part,
            server=server,
            tool=tool,
            outcome=outcome,
            who=who,
            session=session,
            ms=round(ms, 3),
            result_bytes=result_bytes,
            arguments=Raw(self._shown(arguments)) if arguments else UNSET,
            error=self._clean(error[:_CUT_CHARS]) if error else "",
            detail=self._clean(detail) if detail and kind in ("call", "decision") else detail or {},
            prev=last.hash,
        )
        try:
            line = encode(record)
        except (TypeError, ValueError, RecursionError):  # a lone surrogate, or a detail that is no JSON
            line = encode(_tellable(record))
        data += line
        data += b"\n"
        return Head(record.n, hash_of(line))

    def _shown(self, arguments: bytes) -> bytes:
        try:
            # Through the decoder, so that neither a line end nor a fault in it can break the line.
            shown = bytes(msgspec.json.decode(self._redact(arguments), type=Raw))
            if b"\n" in shown or b"\r" in shown:
                shown = msgspec.json.format(shown, indent=-1)
        except Exception:
            # No secret may slip through because redacting it failed, and no record be lost for that.
            return b'"<not shown: it could not be redacted>"'
        if len(shown) <= MAX_ARGUMENT_BYTES:
            return shown
        text = shown[: _CUT_CHARS * 4].decode(errors="replace")[:_CUT_CHARS]
        return msgspec.json.encode(f"{text}… ({len(arguments)} bytes)")

    def _clean(self, value: Any) -> Any:
        """Errors and details come from servers and people, who put secrets into them too."""
        try:
            return msgspec.json.decode(self._redact(msgspec.json.encode(value)))
        except Exception:
            return {} if isinstance(value, dict) else "<not shown: it could not be redacted>"

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
        data = bytearray()
        last = self._append(data, self._last, (at, kind, "", "", "", "", "", "", 0.0, 0, b"", "", detail))
        self._put(data, last)

    def _put(self, data: bytearray, last: Head) -> None:
        written = 0
        try:
            with memoryview(data) as view:
                while written < len(data):
                    written += os.write(self._fd, view[written:])
        except OSError:
            if written:
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)
        self._last = last


def _tellable(record: AuditRecord) -> AuditRecord:
    texts = {
        name: value.encode(errors="backslashreplace").decode()
        for name in ("part", "server", "tool", "who", "session", "error")
        if isinstance(value := getattr(record, name), str)
    }
    return msgspec.structs.replace(record, **texts, detail={"unwritable": repr(record.detail)[:200]}, arguments=UNSET)
