"""Records of a process that does not hold the log: a file of JSON lines, which the hub takes over.

`<pid>-<random>.jsonl`                what a process has recorded; 0600, below a 0700 directory
`<pid>-<random>.jsonl.<random>.taken` the same in the hands of the hub, which removes it once its records are in the log

The writer opens the file by its name for every batch and writes under a lock, after it has seen that the name still
leads to this file. The hub renames it first and then waits for the lock: what was being written is in it, and nothing
comes after. Records are redacted before they are written. `kill -9` loses at most what came in the last batch.

What is dropped is counted, and the count is written as a record: when `MAX_QUEUED_RECORDS` wait because the disk is
slower than the calls, and when the spools of all processes have grown to `MAX_SPOOL_BYTES` because no hub ran.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dari.core.audit.record import AuditRecord, Outcome, RecordKind
from dari.errors import DariError
from dari.paths import home, private_dir

if TYPE_CHECKING:
    from dari.core.audit.chain import PendingRecord

BATCH_S = 0.5
"""So long a record waits for others before they are written together; a person may rely on one second."""
MAX_QUEUED_RECORDS = 50_000
MAX_FILE_BYTES = 4 * 1024 * 1024
"""A process begins another file above that: the hub takes each over as one batch."""
MAX_SPOOL_BYTES = 256 * 1024 * 1024
_CUT_CHARS = 1000
_MAX_ARGUMENT_BYTES = 64 * 1024
_ENDING = ".jsonl"
_TAKEN = ".taken"
SPOOL_FOLDER = "audit-spool"
"""Beside the folder of the log."""
_log = logging.getLogger("dari.audit")


class SpooledRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a spool: a record without its number and the hash of the one before it."""

    at: float
    kind: RecordKind = "call"
    part: str = ""
    server: str = ""
    tool: str = ""
    outcome: Outcome | Literal[""] = ""
    who: str = ""
    session: str = ""
    ms: float = 0.0
    result_bytes: int = 0
    arguments: Raw | UnsetType = UNSET
    error: str = ""
    detail: dict[str, Any] = {}

    def waiting(self) -> AuditRecord:
        """As people are shown it before it is in the log."""
        told = {name: getattr(self, name) for name in self.__struct_fields__ if name != "at"}
        return AuditRecord(n=0, at=datetime.fromtimestamp(self.at, UTC), prev="", **told)

    def pending(self) -> PendingRecord:
        """As the log's writer takes it."""
        arguments = b"" if self.arguments is UNSET else bytes(self.arguments)
        return (
            *(self.at, self.kind, self.part, self.server, self.tool, self.outcome, self.who, self.session),
            *(self.ms, self.result_bytes, arguments, self.error, self.detail or None),
        )


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SpooledRecord).decode
_Waiting = tuple[float, str, str, str, Outcome, str, str, float, int, bytes, str, dict[str, Any] | None]


class AuditSpool:
    """`call` only appends to a queue; one thread redacts, encodes and writes. Nothing is made before the first call."""

    def __init__(
        self,
        directory: Path,
        *,
        redact: Callable[[bytes], bytes],
        batch_s: float = BATCH_S,
        queue: int = MAX_QUEUED_RECORDS,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_spool_bytes: int = MAX_SPOOL_BYTES,
    ) -> None:
        self.directory = directory
        self._dropped = self._unwritten = self._told = 0
        """Records that found the queue full (counted by callers), and those that found the disk full and those that a
        record tells of (both counted by the thread)."""
        self._redact = redact
        self._batch_s = batch_s
        self._limit = queue
        self._max_file_bytes, self._max_spool_bytes = max_file_bytes, max_spool_bytes
        self._queue: deque[_Waiting] = deque()
        self._path: Path | None = None
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

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
        """Record a call that has ended; never blocks. A full queue drops the newest record and counts it."""
        if len(self._queue) >= self._limit:
            self._dropped += 1
            return
        self._queue.append(
            (time.time(), part, server, tool, outcome, who, session, ms, result_bytes, arguments, error, detail)
        )
        if not self._wake.is_set():
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="audit-spool", daemon=True)
                self._thread.start()

    @property
    def lost(self) -> int:
        """Records that were dropped and that no record tells of yet."""
        return self._dropped + self._unwritten - self._told

    def close(self) -> None:
        """Write what is left."""
        self._stopping = True
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._hurry.wait(self._batch_s)
            is_last = self._stopping
            self._wake.clear()
            batch = [self._queue.popleft() for _ in range(len(self._queue))]
            lost = self.lost
            try:
                self._write(batch, lost)
                self._told += lost
            except (OSError, DariError) as error:
                # A disk that is full or away. Its records would fill the memory: their number is kept instead.
                if not self._unwritten:
                    _log.warning("audit event=spool_unwritten path=%s: %s", self.directory, error)
                self._unwritten += len(batch)
            if is_last:
                return

    def _write(self, batch: list[_Waiting], lost: int) -> None:
        if self._path is None or self._size() >= self._max_file_bytes:
            private_dir(self.directory)
            if _size_of(self.directory) >= self._max_spool_bytes:
                raise OSError("the spools have reached their largest size")
            self._path = self.directory / f"{os.getpid()}-{os.urandom(4).hex()}{_ENDING}"
        data = bytearray()
        if lost:
            told = SpooledRecord(at=time.time(), kind="dropped", detail={"records": lost})
            data += _encode(told) + b"\n"
        for number, waiting in enumerate(batch, 1):
            data += self._line(waiting) + b"\n"
            if number % 64 == 0:
                time.sleep(0)  # let the event loop have the interpreter
        if data:
            with _appending(self._path) as file:
                _put(file, data)

    def _line(self, waiting: _Waiting) -> bytes:
        at, part, server, tool, outcome, who, session, ms, result_bytes, arguments, error, detail = waiting
        record = SpooledRecord(
            at=at,
            part=part,
            server=server,
            tool=tool,
            outcome=outcome,
            who=who,
            session=session,
            ms=round(ms, 3),
            result_bytes=result_bytes,
            arguments=Raw(self._shown(arguments)) if arguments else UNSET,
            error=self._clean(error),
            detail=detail or {},
        )
        try:
            return _encode(record)
        except (TypeError, ValueError, RecursionError):  # a lone surrogate, or a detail that JSON does not know
            plain = {name: getattr(record, name).encode(errors="backslashreplace").decode() for name in _TEXTS}
            return _encode(msgspec.structs.replace(record, **plain, detail={}, arguments=UNSET))

    def _shown(self, arguments: bytes) -> bytes:
        """Redacted and on one line; what is long beyond use is cut."""
        try:
            shown = bytes(msgspec.json.decode(self._redact(arguments), type=Raw))
            if b"\n" in shown or b"\r" in shown:
                shown = msgspec.json.format(shown, indent=-1)
        except Exception:
            # No secret may slip through because redacting it failed, and no record be lost for that.
            return b'"<not shown: it could not be redacted>"'
        if len(shown) <= _MAX_ARGUMENT_BYTES:
            return shown
        text = shown[: _CUT_CHARS * 4].decode(errors="replace")[:_CUT_CHARS]
        return _encode(f"{text}… ({len(arguments)} bytes)")

    def _clean(self, text: str) -> str:
        if not text:
            return ""
        try:
            return str(msgspec.json.decode(self._redact(_encode(text[:_CUT_CHARS]))))
        except Exception:
            return "<not shown: it could not be redacted>"

    def _size(self) -> int:
        try:
            return 0 if self._path is None else self._path.stat().st_size
        except OSError:
            return 0  # the hub has taken it: the next batch makes it anew


def process_spool() -> AuditSpool:
    """The spool of this process in the usual place, where the hub looks. To make one costs nothing."""

    def redact(data: bytes) -> bytes:
        from dari.core.audit.redact import redact_json  # in the spool's thread: nobody's first call waits for it

        return redact_json(data)

    return AuditSpool(home() / "bridge" / SPOOL_FOLDER, redact=redact)


_TEXTS = ("part", "server", "tool", "who", "session", "error")


def spooled(directory: Path) -> list[Path]:
    """Files that wait for the hub, those that a hub had in its hands before, first. Symbolic links are left alone."""
    try:
        found = [Path(one.path) for one in os.scandir(directory) if one.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    taken = [path for path in found if path.name.endswith(_TAKEN)]
    return [*sorted(taken), *sorted(path for path in found if path.name.endswith(_ENDING))]


def read_spool(path: Path) -> list[SpooledRecord]:
    """The whole records in a file. A torn last line is left out, and so is a line that is no record."""
    records: list[SpooledRecord] = []
    *lines, _ = path.read_bytes().split(b"\n")
    for line in lines:
        try:
            records.append(_decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return records


def take_spool(path: Path) -> Path:
    """Take a file from its writer: no record comes into it any more. The path that it has now."""
    if path.name.endswith(_TAKEN):
        return path
    taken = path.with_name(f"{path.name}.{os.urandom(4).hex()}{_TAKEN}")  # its writer makes one of the old name again
    os.rename(path, taken)
    file = os.open(taken, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # until a batch that was being written is whole
    finally:
        os.close(file)
    return taken


@contextmanager
def _appending(path: Path) -> Iterator[int]:
    """The file of that name, locked against the hub."""
    while True:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_same(file, path):
                yield file
                return
        finally:
            os.close(file)


def _is_same(file: int, path: Path) -> bool:
    """Whether the name still leads to this file: the hub may have renamed it between opening and locking."""
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    ours = os.fstat(file)
    return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)


def _put(file: int, data: bytearray) -> None:
    """All of it or, with an OSError, nothing."""
    before, written = os.fstat(file).st_size, 0
    try:
        with memoryview(data) as view:
            while written < len(data):
                written += os.write(file, view[written:])
    except OSError:
        if written:
            os.ftruncate(file, before)
        raise


def _size_of(directory: Path) -> int:
    return sum(one.stat(follow_symlinks=False).st_size for one in os.scandir(directory))
