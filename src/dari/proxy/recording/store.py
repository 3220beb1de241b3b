"""Flows that survive: SQLite in WAL mode, written in batches by one thread.

The event loop only appends to a bounded queue. The thread commits what has come together a few times a second, so
`kill -9` loses less than a second, and WAL with synchronous=NORMAL cannot be torn by it. A queue that is full drops
the newest flow from the disk, not from memory, and counts it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from dari.errors import Conflict, Unavailable
from dari.paths import private_dir
from dari.proxy.flow import Flow
from dari.proxy.query.filters import columns_of
from dari.struct_types import ready

MAX_STORE_BYTES = 256 * 1024 * 1024
MAX_QUEUED_FLOWS = 20_000
BATCH_S = 0.05
"""Short enough that the flows of a batch are still in the processor's cache when they are encoded."""
OPEN_S = 1.0
"""A request that runs for longer is written before it ends, so that one that hangs is not lost with the process."""
CRASH_GAP = 20_000
"""What a crash can leave unwritten: a second of the fastest engine. An id that was seen must not come again."""

# Nothing here may ever change: a database of today is what the next version finds.
# No index, and only the columns that are cheap to fill: each would cost every request 1 to 3 µs, and a search walks
# from the newest row backwards anyway.
MIGRATIONS = (
    """
    CREATE TABLE flows (
        id INTEGER PRIMARY KEY AUTOINCREMENT, started_unix_ms INTEGER NOT NULL, host TEXT NOT NULL,
        status INTEGER, data BLOB NOT NULL);
    CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    """,
)
_ROW = "(?,?,?,?,?)"
_INSERT = f"INSERT OR REPLACE INTO flows VALUES {_ROW}"
# One statement for many rows costs a third less, and hands the interpreter lock over once instead of 256 times.
_ROWS_AT_ONCE = 256
_INSERT_MANY = f"INSERT OR REPLACE INTO flows VALUES {','.join([_ROW] * _ROWS_AT_ONCE)}"
_IDS_AT_ONCE = 512

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ready(Flow)).decode


class Clearing:
    """A clear that waits in the queue behind the flows it forgets. `wait` in a thread: it says how the clear ended."""

    def __init__(self, path: Path, running_ids: frozenset[int]) -> None:
        self.running_ids = running_ids
        self._path = path
        self._ended = threading.Event()
        self._problem: str | None = None

    def wait(self, timeout_s: float = 10) -> None:
        """Return when the flows are off the disk; Unavailable when they are not."""
        problem = self._problem if self._ended.wait(timeout_s) else f"it was not cleared within {timeout_s} s"
        if problem is not None:
            hint = "check the room on the disk and who else uses the file, then clear again"
            raise Unavailable(f"recorded flows are still in {self._path}: {problem}", hint)

    def end(self, problem: str | None) -> None:
        self._problem = problem
        self._ended.set()


class FlowStore:
    """Open it, `put` flows from the loop, read from any thread, `close` it."""

    def __init__(
        self,
        path: Path,
        size_bytes: int = MAX_STORE_BYTES,
        queue_flows: int = MAX_QUEUED_FLOWS,
        batch_s: float = BATCH_S,
        migrations: tuple[str, ...] = MIGRATIONS,
    ) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self.lost = 0
        self.problem: str | None = None
        self.last_seq: Callable[[], int] = lambda: 0
        """Asked with each batch, so that the numbers of the log go on after a restart."""
        self.open_flows: Callable[[], list[Flow]] = list
        """Asked once a second for the requests that are still running."""
        private_dir(path.parent)
        self._writer = _opened(path, migrations)
        try:
            self._begin()
        except sqlite3.Error as error:
            self._writer.close()
            raise _cannot_open(path, error) from error
        self._reader = _connected(path)
        self._reading = threading.Lock()
        self._queue: deque[Flow | Clearing] = deque()
        self._queue_flows = queue_flows
        self._batch_s = batch_s
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._stop = threading.Event()
        self._written = threading.Condition()
        self._asked = self._answered = 0
        self._open_seen: dict[int, tuple[object, ...]] = {}
        self._open_asked = -OPEN_S
        self._thread = threading.Thread(target=self._run, name="traffic-store", daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        self._page_bytes: int = self._writer.execute("PRAGMA page_size").fetchone()[0]
        # The real end of the disk space we take; eviction keeps below it.
        self._writer.execute(f"PRAGMA max_page_count = {max(16, self.size_bytes * 5 // 4 // self._page_bytes)}")
        self.saved_seq = self._fact("last_seq", 0)
        """The last number of the log that is known to be given out."""
        was_clean = self._fact("is_clean", 1) == 1
        self.first_seq = self.saved_seq + (1 if was_clean else 5 * CRASH_GAP)
        """Above every number that was given out, known or not."""
        self._last_id = max(self._fact("last_id", 0), self._last_row()) + (0 if was_clean else CRASH_GAP)
        for name, value in (("is_clean", 0), ("last_id", self._last_id), ("last_seq", self.first_seq)):
            self._set_fact(name, value)

    def put(self, flow: Flow) -> None:
        """Write the flow soon; never blocks."""
        queue = self._queue
        if len(queue) >= self._queue_flows:
            self.lost += 1
            return
        queue.append(flow)
        if len(queue) == 1:
            self._wake.set()

    def flush(self, timeout_s: float = 10) -> None:
        """Wait until everything that was put before is on disk."""
        with self._written:
            self._asked += 1
            asked = self._asked
            self._hurry.set()
            self._wake.set()
            if not self._written.wait_for(lambda: self._answered >= asked, timeout_s):
                raise Unavailable(f"the traffic store did not write within {timeout_s} s", "check the disk")

    def close(self) -> None:
        """Write what is queued and end the thread."""
        if not self._stop.is_set():
            self._stop.set()
            self._hurry.set()
            self._wake.set()
            self._thread.join()
            with suppress(sqlite3.Error):
                self._set_fact("last_seq", max(self.last_seq(), self.first_seq))
                self._set_fact("is_clean", 1)
            self._writer.close()
            with self._reading:
                self._reader.close()

    def last_id(self) -> int:
        """The highest id ever given, also when its flow is gone."""
        found = self._rows("SELECT seq FROM sqlite_sequence WHERE name = 'flows'", ())
        return max(self._last_id, int(found[0][0]) if found else 0)

    def ids(self) -> set[int]:
        return {row[0] for row in self._rows("SELECT id FROM flows", ())}

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM flows", ())[0][0])

    def get(self, flow_id: int) -> Flow | None:
        found = self._rows("SELECT data FROM flows WHERE id = ?", (flow_id,))
        return _decode(found[0][0]) if found else None

    def newest_ids(
        self, where: str = "1", values: list[Any] | None = None, before_id: int | None = None
    ) -> Iterator[int]:
        """Ids of the rows that fulfil the condition, the highest first, read a few hundred at a time."""
        last = before_id if before_id is not None else 2**63 - 1
        while True:
            query = f"SELECT id FROM flows WHERE id < ? AND {where} ORDER BY id DESC LIMIT {_IDS_AT_ONCE}"
            found = self._rows(query, (last, *(values or ())))
            for row in found:
                last = row[0]
                yield last
            if len(found) < _IDS_AT_ONCE:
                return

    def clear(self) -> None:
        """Forget every flow that was put before, those still queued included."""
        self.start_clear().wait()

    def start_clear(self) -> Clearing:
        """The same from the loop. What is put after this call stays, also while the clear is still under way."""
        clearing = Clearing(self.path, frozenset(flow.id for flow in self.open_flows()))
        self._queue.append(clearing)
        self._hurry.set()
        self._wake.set()
        return clearing

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reading:
            try:
                return self._reader.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise Unavailable(f"cannot read {self.path}: {error}", "see daemon.doctor") from error

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self._queue:
                self._wake.wait(OPEN_S)
            self._wake.clear()
            if self._queue:
                self._hurry.wait(self._batch_s)  # let a batch come together, unless somebody waits for it
            self._hurry.clear()
            self._write_all()
        self._write_all()

    def _write_all(self) -> None:
        with self._written:
            asked = self._asked
        flows: list[Flow] = []
        cleared_ids: set[int] = set()
        clearings: list[Clearing] = []
        for _ in range(len(self._queue)):
            one = self._queue.popleft()
            if isinstance(one, Flow):
                flows.append(one)
            else:
                clearings.append(one)
                cleared_ids.update(one.running_ids, (flow.id for flow in flows))
                flows = []
        rows: list[tuple[Any, ...]] = []
        try:
            if clearings:
                self._clear(clearings, cleared_ids)
            # A running request that was cleared is written when it ends.
            still_open = [flow for flow in self._still_open() if flow.id not in cleared_ids]
            rows = [row for flow in (*still_open, *flows) if (row := self._row(flow)) is not None]
            if rows:
                self._insert(rows)
        except Exception as error:  # whatever it is, the thread must live: the next batch may go through
            self.lost += len(rows)
            self.problem = str(error)
        finally:
            with self._written:
                self._answered = asked
                self._written.notify_all()

    def _clear(self, clearings: list[Clearing], cleared_ids: set[int]) -> None:
        problem: str | None = None
        try:
            self._delete_all(cleared_ids)
        except Exception as error:  # belongs to those who clear
            problem = str(error)
        else:
            try:
                self._shrink()
            except sqlite3.Error as error:
                self.problem = f"deleted flows are still in free pages of {self.path}: {error}"
        for clearing in clearings:
            clearing.end(problem)

    def _delete_all(self, given_ids: Iterable[int]) -> None:
        """Delete every row, and remember the ids that were given but never written."""
        last_id = max(self._last_id, *given_ids, self._last_row())
        with self._transaction():
            self._writer.execute("DELETE FROM flows")
            self._set_fact("last_id", last_id)
        self._last_id = last_id

    def _shrink(self) -> None:
        """What was cleared may be secret: leave it neither in free pages nor in the log."""
        self._writer.execute("VACUUM")
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _still_open(self) -> list[Flow]:
        """Requests that have run for a second and changed since they were written, asked for once a second."""
        # By a clock that nobody sets back: it would stop this for as long.
        if (asked := time.monotonic()) - self._open_asked < OPEN_S:
            return []
        self._open_asked, now = asked, time.time()
        running = [flow for flow in self.open_flows() if flow.started_unix_ms < (now - OPEN_S) * 1000]
        seen, self._open_seen = self._open_seen, {flow.id: _progress(flow) for flow in running}
        return [flow for flow in running if seen.get(flow.id) != self._open_seen[flow.id]]

    def _row(self, flow: Flow) -> tuple[Any, ...] | None:
        try:
            return (*columns_of(flow), _encode(flow))
        except Exception as error:  # text that no encoding takes, such as half a surrogate pair
            self.lost += 1
            self.problem = f"flow {flow.id} cannot be written: {error}"
            return None

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        try:
            self._commit(rows)
        except sqlite3.OperationalError as error:
            # On a disk that others filled, old flows would go and make no room.
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL or not self._reaches_limit(rows):
                raise
            self.problem = str(error)
            self._evict(0.5)
            try:
                self._commit(rows)
            except sqlite3.OperationalError:
                # No room for all of it even so: the newer half matters more.
                half = (len(rows) + 1) // 2
                self.lost += half
                if rows[half:]:
                    self._insert(rows[half:])
        used = self._used_bytes()
        if used > self.size_bytes:
            self._evict(1 - 0.9 * self.size_bytes / used)

    def _commit(self, rows: list[tuple[Any, ...]]) -> None:
        with self._transaction():
            whole = len(rows) - len(rows) % _ROWS_AT_ONCE
            for start in range(0, whole, _ROWS_AT_ONCE):
                values = list(chain.from_iterable(rows[start : start + _ROWS_AT_ONCE]))
                self._writer.execute(_INSERT_MANY, values)
            self._writer.executemany(_INSERT, rows[whole:])
            self._set_fact("last_seq", max(self.last_seq(), self.first_seq))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _fact(self, name: str, otherwise: int) -> int:
        found = self._writer.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return otherwise if found is None else int(found[0])

    def _last_row(self) -> int:
        found = self._writer.execute("SELECT seq FROM sqlite_sequence WHERE name = 'flows'").fetchone()
        return 0 if found is None else int(found[0])

    def _set_fact(self, name: str, value: int) -> None:
        self._writer.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _reaches_limit(self, rows: list[tuple[Any, ...]]) -> bool:
        return self._used_bytes() + sum(len(row[-1]) for row in rows) > self.size_bytes

    def _used_bytes(self) -> int:
        pages = self._writer.execute("PRAGMA page_count").fetchone()[0]
        free = self._writer.execute("PRAGMA freelist_count").fetchone()[0]
        return int(pages - free) * self._page_bytes

    def _evict(self, share: float) -> None:
        """Remove the oldest part of the rows; their pages are used again."""
        count = self._writer.execute("SELECT count(*) FROM flows").fetchone()[0]
        oldest = "SELECT id FROM flows ORDER BY id LIMIT ?"
        self._writer.execute(f"DELETE FROM flows WHERE id IN ({oldest})", (max(1, int(count * share)),))


def _progress(flow: Flow) -> tuple[object, ...]:
    frames = flow.frames
    return flow.state, flow.status, frames[-1].ts_unix_ms if frames else 0


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)


def _opened(path: Path, migrations: tuple[str, ...]) -> sqlite3.Connection:
    # SQLite gives its journal the mode of the database, so this makes all three files private.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = _connected(path)
    try:
        # Rows have 1 to 2 kB: larger pages save a sixth of a commit. It counts for a new file only.
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {8 * 1024 * 1024}")
        _migrate(connection, path, migrations)
    except sqlite3.DatabaseError as error:
        connection.close()
        if error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise _cannot_open(path, error) from error
        os.replace(path, path.with_name(f"{path.name}.broken-{int(time.time())}"))
        return _opened(path, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def _cannot_open(path: Path, error: sqlite3.Error) -> Unavailable:
    return Unavailable(f"cannot open {path}: {error}", "check who else uses it, and the disk")


def _migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...]) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise Conflict(
            f"{path} was written by a newer Dari (its version is {version}, ours {len(migrations)})",
            "update Dari, or move the file away",
        )
    for number in range(version, len(migrations)):
        with closing(connection.cursor()) as cursor:
            cursor.executescript(f"BEGIN IMMEDIATE; {migrations[number]} PRAGMA user_version = {number + 1}; COMMIT;")
