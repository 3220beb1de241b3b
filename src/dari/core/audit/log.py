"""The audit log of the hub: records in a chain of hashes.

A few times a second the writer's thread writes what has come together, so `kill -9` loses less than a second. When the
disk does not take the records they are kept and tried again; soon after, and when the queue is full, calls are refused:
what cannot be recorded is not done.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import UNSET, Raw

from dari.core.audit.chain import ChainFile
from dari.core.audit.record import PendingRecord, RecordKind
from dari.core.audit.verify import last_record, repair
from dari.core.audit.writer import MAX_QUEUED_RECORDS, RETRY_S, RecordWriter
from dari.errors import Conflict, Unavailable
from dari.paths import private_dir

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
            chain = ChainFile(
                self.directory, last_record(self.directory), max_file_bytes=max_file_bytes, keep_days=keep_days
            )
        except BaseException:
            os.close(self._lock)
            raise
        most = max_queued + MAX_EXCESS_RECORDS
        super().__init__(chain, "audit-log", batch_s=batch_s, retry_s=retry_s, max_queued=most, now=now)
        self._is_closed = False
        if torn:
            self.note("repaired", bytes=torn)
        self.note("opened", pid=os.getpid())

    def note(self, kind: RecordKind, *, server: str = "", tool: str = "", who: str = "", **detail: Any) -> None:
        """Record a decision of a person, or something about the log itself."""
        self.add_all([PendingRecord(at=self.now(), kind=kind, server=server, tool=tool, who=who, detail=detail)])

    def refuse(self, who: str, *, pid: int | None, reason: str, **detail: Any) -> None:
        """Record that something which only a person may do was refused to a caller."""
        detail = {"event": "refused", **detail, "pid": pid, "reason": reason}
        self.add_all([PendingRecord(at=self.now(), kind="decision", outcome="denied", who=who, detail=detail)])

    def hold(self, server: str, tool: str, *, who: str, session: str, arguments: bytes, error: str) -> None:
        """Record that a call of another process waits for a person. That process records the call itself."""
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
            detail={"event": "approval asked"},
        )
        self.add_all([record])

    def take_over(self, records: list[PendingRecord], file: str) -> bool:
        """Write the records of a spool, in one batch that ends with a record of its name; False when it has to wait."""
        if self.queued >= self._limit:
            return False
        detail = {"file": file, "records": len(records)}
        self.add_all([*records, PendingRecord(at=self.now(), kind="spooled", detail=detail)])
        return True

    def check(self) -> None:
        """Raise if a call could not be recorded now; a gateway asks before it makes one."""
        queued, since_s = self.queued, self.failing_since_s
        is_failing = since_s is not None and time.monotonic() - since_s >= self._grace_s
        if is_failing or queued >= self._limit:
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
