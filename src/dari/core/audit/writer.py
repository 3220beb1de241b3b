"""The one way into a file of records: `add` only appends to a queue; one thread redacts and writes in batches.

The log of the hub and the spool of every other process are writers; where the records go is the sink. When the sink
does not take a batch, it is kept and tried again. A full queue drops the newest record and counts it, and a record of
kind `dropped` tells how many once the sink takes records again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import UNSET, Raw

from dari.core.audit.calls import CallRecord
from dari.core.audit.record import AuditRecord, Outcome, PendingRecord, encode
from dari.errors import DariError

if TYPE_CHECKING:
    from dari.core.context import Context

RETRY_S = 1.0
MAX_QUEUED_RECORDS = 50_000
FLUSH_AT_RECORDS = 256
"""So many are written at once without waiting for more: they are still in the processor's cache."""
BREATH = 256
"""Records, about a millisecond, between two chances for the event loop; by itself the interpreter gives it one after
5 ms. Each handover of the interpreter costs both threads as much as ten records do."""
_TEXTS = ("part", "server", "tool", "who", "session", "error")
_log = logging.getLogger("dari.audit")


class RecordSink(Protocol):
    """Where a writer's records go. Called by its thread only."""

    def write(self, batch: Sequence[PendingRecord]) -> None:
        """Append all of them or, with an `OSError`, none."""

    def sync_in_s(self) -> float | None:
        """Seconds until `sync` is due; None when nothing waits for it."""

    def sync(self) -> None:
        """Have the disk keep what was written."""

    def close(self) -> None: ...


class RecordWriter:
    """The thread begins with the first record. `batch_s`: so long a record waits for others."""

    def __init__(
        self,
        sink: RecordSink,
        name: str,
        *,
        batch_s: float,
        retry_s: float = RETRY_S,
        max_queued: int = MAX_QUEUED_RECORDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.problem: str | None = None
        """Why the last batch could not be written; None when all is well."""
        self.failing_since_s: float | None = None
        """By the monotonic clock; None when all is well."""
        self._sink, self._name, self._batch_s, self._retry_s = sink, name, batch_s, retry_s
        self._max_queued = max_queued
        self.now = now
        self._queue: deque[PendingRecord] = deque()
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._dropped = self._told = 0
        """Records that found the queue full (counted by callers), and those a record tells of (by the thread)."""
        self._stopping = False
        self._done = threading.Condition()
        self._asked = self._answered = self._refused = 0
        self._thread: threading.Thread | None = None

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def lost(self) -> int:
        """Records that were dropped and that no record tells of yet."""
        return self._dropped - self._told

    def add(self, record: PendingRecord) -> None:
        """Queue a record; never blocks."""
        queued = len(self._queue)
        if queued >= self._max_queued:
            self._dropped += 1
            return
        self._queue.append(record)
        if not self._wake.is_set():
            self._start()
        if queued == FLUSH_AT_RECORDS:
            self._hurry.set()

    def add_all(self, records: Sequence[PendingRecord]) -> None:
        """Queue records that are to be written in one batch, whatever waits already."""
        self._queue.extend(records)
        self._start()

    def begin(self, context: Context, tool: str, arguments: bytes | Raw) -> CallRecord:
        """The record of a call that begins; who serves calls imports nothing of the log before there is one."""
        return CallRecord(self, context, tool, arguments)

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
        arguments: bytes | Raw = b"",
        error: str = "",
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Record a call that has ended; `arguments` is their JSON, redacted before it is written. Never blocks."""
        self.add(
            PendingRecord(
                at=self.now(),
                part=part,
                server=server,
                tool=tool,
                outcome=outcome,
                who=who,
                session=session,
                ms=int(ms * 1000) / 1000,
                result_bytes=result_bytes,
                arguments=Raw(bytes(arguments)) if arguments else UNSET,  # a view would keep its whole message
                error=error,
                detail=detail or {},
            )
        )

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all that was recorded before is on disk; False when that fails, or time is over."""
        with self._done:
            self._asked += 1
            ticket = self._asked
            self._hurry.set()
            self._start()
            self._done.wait_for(lambda: max(self._answered, self._refused) >= ticket, timeout_s)
            return self._answered >= ticket

    def close(self) -> None:
        """Write what is left."""
        self._stopping = True
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._sink.close()

    def _start(self) -> None:
        self._wake.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            self._wake.wait(self._sink.sync_in_s())
            if not self._stopping and self.problem is None:
                self._hurry.wait(self._batch_s if self._wake.is_set() else 0)
            self._wake.clear()
            self._hurry.clear()
            asked, is_last = self._asked, self._stopping
            try:
                self._write_batch(asked > self._answered or is_last)
            except (OSError, ValueError, DariError) as error:
                self._fail(error)
                with self._done:
                    self._refused = asked
                    self._done.notify_all()
                if is_last:
                    return
                self._hurry.wait(self._retry_s)
                self._wake.set()
                continue
            self.problem = self.failing_since_s = None
            if lost := self.lost:
                self._told += lost
                self.add_all([PendingRecord(at=self.now(), kind="dropped", detail={"records": lost})])
            with self._done:
                self._answered = asked
                self._done.notify_all()
            if is_last and not self._queue:
                return
            if self._queue:
                self._wake.set()

    def _write_batch(self, must_sync: bool) -> None:
        from dari.core.audit.redact import redact_record  # in this thread: nobody's first call waits for it

        # No copy is kept of what is written: on failure the records are still in the queue.
        batch: list[PendingRecord] = []
        for number, record in enumerate(list(self._queue), 1):
            batch.append(redact_record(record))
            if number % BREATH == 0:
                time.sleep(0)
        if batch:
            self._sink.write(batch)
        for _ in batch:
            self._queue.popleft()
        if must_sync or self._sink.sync_in_s() == 0:
            self._sink.sync()

    def _fail(self, error: Exception) -> None:
        if self.problem is None:
            _log.warning("audit event=unwritten writer=%s: %s", self._name, error)
            self.failing_since_s = time.monotonic()
        self.problem = str(error)


def encode_safely(record: PendingRecord | AuditRecord) -> bytes:
    """A line without its end. What JSON cannot hold is escaped (a lone surrogate) or left out (a detail)."""
    try:
        return encode(record)
    except (TypeError, ValueError, RecursionError):
        texts = {name: getattr(record, name).encode(errors="backslashreplace").decode() for name in _TEXTS}
        detail = {"unwritable": repr(record.detail)[:200]}
        return encode(msgspec.structs.replace(record, **texts, detail=detail, arguments=UNSET))


def append_all(file: int, data: bytes | bytearray, size_before: int) -> None:
    """All of it or, with an `OSError`, nothing: a part that was written is taken back."""
    written = 0
    try:
        with memoryview(data) as view:
            while written < len(data):
                written += os.write(file, view[written:])
    except OSError:
        if written:
            os.ftruncate(file, size_before)
        raise
