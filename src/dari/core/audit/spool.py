"""Records of a process that does not hold the log: a file of JSON lines, which the hub takes over.

`<pid>-<random>.jsonl`                what a process has recorded; 0600, below a 0700 directory
`<pid>-<random>.jsonl.<random>.taken` the same in the hands of the hub, which removes it once its records are in the log

The writer opens the file by its name for every batch and writes under a lock, after it has seen that the name still
leads to this file. The hub renames it first and then waits for the lock: what was being written is in it, and nothing
comes after. Records are redacted before they are written. `kill -9` loses at most what came in the last batch.

When no hub runs, the spools of all processes grow to `MAX_SPOOL_BYTES`. Then, as when the disk is full, records wait in
memory, up to `MAX_QUEUED_RECORDS`; those that come after are dropped and counted.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dari.core.audit.record import PendingRecord, decode_pending
from dari.core.audit.writer import BREATH, MAX_QUEUED_RECORDS, RETRY_S, RecordWriter, append_all, encode_safely
from dari.paths import home, private_dir

if TYPE_CHECKING:
    from dari.core.audit.log import AuditLog


BATCH_S = 0.5
"""So long a record waits for others before they are written together; a person may rely on one second."""
MAX_FILE_BYTES = 4 * 1024 * 1024
"""A process begins another file above that: the hub takes each over as one batch."""
MAX_SPOOL_BYTES = 256 * 1024 * 1024
_ENDING = ".jsonl"
_TAKEN = ".taken"
SPOOL_FOLDER = "audit-spool"
"""Beside the folder of the log."""


class AuditSpool(RecordWriter):
    """Nothing is made before the first record."""

    def __init__(
        self,
        directory: Path,
        *,
        batch_s: float = BATCH_S,
        retry_s: float = RETRY_S,
        max_queued: int = MAX_QUEUED_RECORDS,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_spool_bytes: int = MAX_SPOOL_BYTES,
    ) -> None:
        self.directory = directory
        sink = SpoolFile(directory, max_file_bytes, max_spool_bytes)
        super().__init__(sink, "audit-spool", batch_s=batch_s, retry_s=retry_s, max_queued=max_queued)


class SpoolFile:
    """The sink of a spool. The kernel writes it to the disk when it likes: a hub takes it within a second or so."""

    def __init__(self, directory: Path, max_file_bytes: int, max_spool_bytes: int) -> None:
        self._directory = directory
        self._max_file_bytes, self._max_spool_bytes = max_file_bytes, max_spool_bytes
        self._path: Path | None = None

    def write(self, batch: Sequence[PendingRecord]) -> None:
        if self._path is None or self._size() >= self._max_file_bytes:
            private_dir(self._directory)
            if _size_of(self._directory) >= self._max_spool_bytes:
                raise OSError(f"the spools in {self._directory} have reached their largest size")
            self._path = self._directory / f"{os.getpid()}-{os.urandom(4).hex()}{_ENDING}"
        data = bytearray()
        for number, record in enumerate(batch, 1):
            data += encode_safely(record)
            data += b"\n"
            if number % BREATH == 0:
                time.sleep(0)
        with _appending(self._path) as file:
            append_all(file, data, os.fstat(file).st_size)

    def sync_in_s(self) -> float | None:
        return None

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _size(self) -> int:
        try:
            return 0 if self._path is None else self._path.stat().st_size
        except OSError:
            return 0  # the hub has taken it: the next batch makes it anew


def process_spool() -> AuditSpool:
    """The spool of this process in the usual place, where the hub looks. To make one costs nothing."""
    return AuditSpool(home() / "bridge" / SPOOL_FOLDER)


def spooled(directory: Path) -> list[Path]:
    """Files that wait for the hub, those that a hub had in its hands before, first. Symbolic links are left alone."""
    try:
        found = [Path(one.path) for one in os.scandir(directory) if one.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    taken = [path for path in found if path.name.endswith(_TAKEN)]
    return [*sorted(taken), *sorted(path for path in found if path.name.endswith(_ENDING))]


def read_spool(path: Path) -> list[PendingRecord]:
    """The whole records in a file. A torn last line is left out, and so is a line that holds no record."""
    return [record for record in _read_lines(path)[0] if record is not None]


class SpoolReport(Struct, frozen=True, kw_only=True):
    """What waits for the hub. A record is chained when the hub takes it: until then only its line can be checked."""

    files: int = 0
    records: int = 0
    unreadable: tuple[str, ...] = ()
    """Lines that hold no record, as `file:line`, and files that may not be read."""
    torn: tuple[str, ...] = ()
    """Files whose last line is not finished: being written, or left so by a writer that was killed."""

    @property
    def is_whole(self) -> bool:
        return not self.unreadable and not self.torn


def check_spools(directory: Path) -> SpoolReport:
    files = records = 0
    unreadable: list[str] = []
    torn: list[str] = []
    for path in spooled(directory):
        try:
            lines, rest = _read_lines(path)
        except FileNotFoundError:
            continue  # the hub took it just now
        except OSError:  # another user wrote it, say `sudo dari` with this home
            files += 1
            unreadable.append(path.name)
            continue
        files += 1
        records += sum(record is not None for record in lines)
        unreadable += [f"{path.name}:{number}" for number, record in enumerate(lines, 1) if record is None]
        torn += [path.name] if rest else []
    return SpoolReport(files=files, records=records, unreadable=tuple(unreadable), torn=tuple(torn))


def _read_lines(path: Path) -> tuple[list[PendingRecord | None], bytes]:
    """A record, or None, for each whole line; and what stands after the last one."""
    *lines, rest = path.read_bytes().split(b"\n")
    return [_parse(line) for line in lines], rest


def _parse(line: bytes) -> PendingRecord | None:
    """A time that cannot be becomes now: one in the future would turn the log's page and age the files before it."""
    try:
        record = decode_pending(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    now = time.time()
    return record if 0 <= record.at <= now else replace(record, at=now)


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


def _size_of(directory: Path) -> int:
    return sum(one.stat(follow_symlinks=False).st_size for one in os.scandir(directory))


INTERVAL_S = 1.0
MAX_MARKS = 10_000
_log = logging.getLogger("dari.audit")


class SpoolTakeover:
    """`take` is for a thread: it reads files and waits for the disk.

    A hub that is killed may leave a file whose records are in the log. Records of a file go into the log in one batch
    that ends with a record of its name, so the next hub knows.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._written: set[str] = set()
        """Names of files whose records the log has, but which are still there: the disk had not answered yet."""

    def has_work(self) -> bool:
        """Whether a file waits; costs a look into a folder."""
        return bool(spooled(self._directory))

    def take(self, log: AuditLog) -> int:
        """Take over what there is; the number of records."""
        with self._lock:
            return sum(self._take(path, log) for path in spooled(self._directory))

    def _take(self, path: Path, log: AuditLog) -> int:
        try:
            taken = take_spool(path)
            number = 0
            if taken != path or not self._is_in_log(path, log):
                records = read_spool(taken)
                if not log.take_over(records, taken.name):
                    return 0  # the log is busy: at the next time
                number = len(records)
                self._written.add(taken.name)
            if log.flush():
                taken.unlink()
                self._written.discard(taken.name)
            return number
        except OSError as error:
            _log.warning("audit event=spool_left path=%s: %s", path, error)
            return 0

    def _is_in_log(self, path: Path, log: AuditLog) -> bool:
        """Whether a hub, this one or one that was killed, has written the records of this file already."""
        if path.name in self._written:
            return True
        from dari.core.audit.query import query

        since = datetime.fromtimestamp(path.stat().st_mtime, UTC) - timedelta(days=1)
        marks = query(log.directory, kind="spooled", since=since, limit=MAX_MARKS)
        return any(one.detail.get("file") == path.name for one in marks)
