"""The audit log as the gateway writes it: `call(…)` only appends to a queue; one thread redacts, chains and writes.

A few times a second the thread writes what has come together, so `kill -9` loses less than a second. When the disk
does not take the records they are kept and tried again; soon after, and when the queue is full, calls are refused:
what cannot be recorded is not done.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from dari.core.audit.chain import ChainWriter, PendingRecord
from dari.core.audit.record import Outcome, RecordKind
from dari.core.audit.verify import last_record, repair
from dari.errors import Conflict, Unavailable
from dari.paths import private_dir

BATCH_S = 0.2
RETRY_S = 1.0
GRACE_S = 5.0
"""So long a disk may fail before calls are refused."""
MAX_QUEUED_RECORDS = 50_000
FLUSH_AT_RECORDS = 2_000
MAX_EXCESS_RECORDS = 10_000
"""Calls that were let through before the queue was full still have to be recorded."""

Sync = Literal["batch", "second", "never"]
Redact = Callable[[bytes], bytes]


class AuditLog:
    """One writer per directory. `sync`: after every batch, once a second, or when the kernel likes to."""

    def __init__(
        self,
        directory: Path,
        *,
        redact: Redact,
        sync: Sync = "second",
        max_file_bytes: int = 64 * 1024 * 1024,
        keep_days: int | None = 90,
        batch_s: float = BATCH_S,
        retry_s: float = RETRY_S,
        grace_s: float = GRACE_S,
        queue: int = MAX_QUEUED_RECORDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.directory = private_dir(directory)
        self.problem: str | None = None
        """Why the last batch could not be written; None when all is well."""
        self.lost = 0
        self._refusing = False
        self._now = now
        self._lock = _locked(self.directory)
        try:
            torn = repair(self.directory)
            self._chain = ChainWriter(
                self.directory, last_record(self.directory), redact, max_file_bytes=max_file_bytes, keep_days=keep_days
            )
        except BaseException:
            os.close(self._lock)
            raise
        self._sync, self._batch_s, self._retry_s, self._grace_s = sync, batch_s, retry_s, grace_s
        self._limit = queue
        self._queue: deque[PendingRecord] = deque()
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._stopping = False
        self._done = threading.Condition()
        self._asked = self._answered = 0
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()
        if torn:
            self.note("repaired", bytes=torn)
        self.note("opened", pid=os.getpid())

    def call(
        self,
        server: str,
        tool: str,
        outcome: Outcome,
        *,
        part: str = "",
        who: str = "",
        session: str = "",
        ms: float = 0.0,
        result_bytes: int = 0,
        arguments: bytes = b"",
        error: str = "",
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Record a call that has ended; `arguments` is their JSON, redacted before it is written. Never blocks.

        Ask `check` before the call: a queue that is far over its limit drops the newest record and counts it.
        """
        if len(self._queue) > self._limit + MAX_EXCESS_RECORDS:
            self.lost += 1
            return
        self._queue.append(
            (self._now(), "call", part, server, tool, outcome, who, session, ms, result_bytes, arguments, error, detail)
        )
        if not self._wake.is_set():
            self._wake.set()

    def note(self, kind: RecordKind, *, server: str = "", tool: str = "", who: str = "", **detail: Any) -> None:
        """Record what is no call: a decision of a person, or something about the log itself."""
        self._queue.append((self._now(), kind, "", server, tool, "", who, "", 0.0, 0, b"", "", detail))
        self._wake.set()

    def refuse(self, who: str, *, pid: int | None, reason: str, **detail: Any) -> None:
        """Record that something which only a person may do was refused to a caller."""
        told = {"event": "refused", **detail, "pid": pid, "reason": reason}
        self._queue.append((self._now(), "decision", "", "", "", "denied", who, "", 0.0, 0, b"", "", told))
        self._wake.set()

    def hold(self, server: str, tool: str, *, who: str, session: str, arguments: bytes, error: str) -> None:
        """Record that a call of another process waits for a person. That process records the call itself."""
        told = {"event": "approval asked"}
        self._queue.append(
            (self._now(), "decision", "", server, tool, "held", who, session, 0.0, 0, arguments, error, told)
        )
        self._wake.set()

    def take_over(self, records: list[PendingRecord], file: str) -> bool:
        """Write the records of a spool, in one batch that ends with a record of its name; False when it has to wait."""
        if len(self._queue) >= self._limit:
            return False
        detail = {"file": file, "records": len(records)}
        mark: PendingRecord = (self._now(), "spooled", "", "", "", "", "", "", 0.0, 0, b"", "", detail)
        self._queue.extend([*records, mark])
        self._wake.set()
        return True

    def check(self) -> None:
        """Raise if a call could not be recorded now; a gateway asks before it makes one."""
        queued = len(self._queue)
        if queued >= FLUSH_AT_RECORDS:
            self._hurry.set()
        if self._refusing or queued >= self._limit:
            raise Unavailable(
                f"the audit log in {self.directory} cannot be written: {self.problem or 'it cannot keep up'}",
                "free disk space or correct its permissions; calls go on by themselves",
            )

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all that was recorded before is on disk, as `sync="batch"` would; False when time is over."""
        with self._done:
            self._asked += 1
            ticket = self._asked
            self._hurry.set()
            self._wake.set()
            return self._done.wait_for(lambda: self._answered >= ticket, timeout_s)

    def close(self) -> None:
        """Write what is left and let the directory go."""
        if self._stopping:
            return
        self.note("closed")
        self._stopping = True
        self._hurry.set()
        self._wake.set()
        self._thread.join()
        self._chain.close()
        os.close(self._lock)

    def _run(self) -> None:
        failing_since: float | None = None
        while True:
            self._wake.wait(self._chain.sync_in_s() if self._sync == "second" else None)
            if not self._stopping and failing_since is None:
                self._hurry.wait(self._batch_s if self._wake.is_set() else 0)
            self._wake.clear()
            self._hurry.clear()
            asked = self._asked
            stopping = self._stopping
            batch = list(self._queue)
            try:
                self._chain.write(batch)
                for _ in batch:
                    self._queue.popleft()
                if self._sync == "batch" or asked > self._answered or stopping or self._chain.sync_in_s() == 0:
                    self._chain.sync(to_disk=self._sync != "never" or asked > self._answered)
            except (OSError, ValueError) as error:
                self.problem = str(error)
                failing_since = failing_since or time.monotonic()
                self._refusing = time.monotonic() - failing_since >= self._grace_s or len(self._queue) >= self._limit
                if stopping:
                    return
                self._hurry.wait(self._retry_s)
                self._wake.set()
                continue
            failing_since, self.problem, self._refusing = None, None, False
            if self.lost:
                lost, self.lost = self.lost, 0
                self.note("dropped", records=lost)
            with self._done:
                self._answered = asked
                self._done.notify_all()
            if stopping and not self._queue:
                return
            if self._queue:
                self._wake.set()


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
