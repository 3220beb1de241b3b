"""Pins on disk: SQLite in a 0600 file, with every decision ever taken in `history`.

Contents are kept once per digest, so that a person can be shown what changed, also long after.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from dari.bridge.trust.items import ItemKind, ListedItem
from dari.errors import Unavailable
from dari.paths import private_dir

PinState = Literal["listed", "missing", "retired"]
"""`missing`: not listed any more. `retired`: a person agreed to that; it counts only if the name comes back."""
HeldReason = Literal["changed", "added", "renamed"]
PinEvent = Literal["pinned", "held", "returned", "approved", "rejected", "retired", "forgotten"]

# Nothing here may ever change: a database of today is what the next version finds.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS contents (digest TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pins (
    server TEXT, profile TEXT, kind TEXT, name TEXT, digest TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'listed',
    PRIMARY KEY (server, profile, kind, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS held (
    server TEXT, profile TEXT, kind TEXT, name TEXT, digest TEXT NOT NULL, reason TEXT NOT NULL,
    before TEXT NOT NULL, was TEXT NOT NULL, since REAL NOT NULL, rejected_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (server, profile, kind, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (
    server TEXT, profile TEXT, kind TEXT, PRIMARY KEY (server, profile, kind)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, server TEXT NOT NULL, profile TEXT NOT NULL,
    kind TEXT NOT NULL, name TEXT NOT NULL, event TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL,
    by TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS history_server ON history (server, id);
"""


class Pin(Struct, frozen=True):
    server: str
    profile: str
    kind: ItemKind
    name: str
    digest: str
    state: PinState = "listed"


class HeldItem(Struct, frozen=True):
    """An item that waits for a person. `before` is the digest of what was pinned, empty for a new one."""

    server: str
    profile: str
    kind: ItemKind
    name: str
    digest: str
    reason: HeldReason
    before: str
    was: str
    """The name that it seems to have had before."""
    since: float
    rejected_by: str = ""


class PinDecision(Struct, frozen=True):
    """One line of the history."""

    id: int
    at: float
    server: str
    profile: str
    kind: ItemKind
    name: str
    event: PinEvent
    old: str
    new: str
    by: str


class PinWrites:
    """Rows to write together. A review of two thousand tools collects them first, so that its transaction is short."""

    __slots__ = ("contents", "seen", "pins", "states", "held", "released", "history")

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.seen: list[tuple[object, ...]] = []
        self.pins: list[tuple[object, ...]] = []
        self.states: list[tuple[object, ...]] = []
        self.held: list[tuple[object, ...]] = []
        self.released: list[tuple[object, ...]] = []
        self.history: list[tuple[object, ...]] = []

    def mark_seen(self, server: str, profile: str, kind: ItemKind) -> None:
        self.seen.append((server, profile, kind))

    def keep(self, item: ListedItem) -> None:
        self.contents[item.digest] = item.content

    def pin(self, server: str, profile: str, kind: ItemKind, name: str, digest: str) -> None:
        self.pins.append((server, profile, kind, name, digest))

    def set_state(self, pin: Pin, state: PinState) -> None:
        self.states.append((state, pin.server, pin.profile, pin.kind, pin.name))

    def hold(self, held: HeldItem) -> None:
        self.held.append(tuple(getattr(held, name) for name in HeldItem.__struct_fields__))

    def release(self, held: HeldItem) -> None:
        self.released.append((held.server, held.profile, held.kind, held.name))

    def note(
        self, at: float, event: PinEvent, subject: Pin | HeldItem, *, old: str = "", new: str = "", by: str = ""
    ) -> None:
        self.history.append((at, subject.server, subject.profile, subject.kind, subject.name, event, old, new, by))


class PinStore:
    """Rows in, rows out; what they mean is for `Pins`. May be used from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        private_dir(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.chmod(path, 0o600)
        self._lock = threading.RLock()
        self._commits = 0
        self._db = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
        try:
            with self._told():
                self._db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {_SCHEMA}")
        except Unavailable:
            self._db.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def version(self) -> int:
        """Another number after another process wrote."""
        with self._lock, self._told():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def revision(self) -> tuple[int, int]:
        """Changes with every write, also by another process."""
        return self.version(), self._commits

    @contextmanager
    def changing(self) -> Iterator[None]:
        """All of it or nothing."""
        with self._lock, self._told():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            self._commits += 1

    def pins(self, server: str) -> list[Pin]:
        return [
            Pin(*row) for row in self._rows("SELECT * FROM pins WHERE server=? ORDER BY profile, kind, name", server)
        ]

    def held(self, server: str | None = None) -> list[HeldItem]:
        order = "ORDER BY server, kind, name, profile"
        if server is None:
            return [HeldItem(*row) for row in self._rows(f"SELECT * FROM held {order}")]
        return [HeldItem(*row) for row in self._rows(f"SELECT * FROM held WHERE server=? {order}", server)]

    def seen(self, server: str) -> set[tuple[str, str]]:
        """Profile and kind of every list that was looked at before."""
        return {(row[0], row[1]) for row in self._rows("SELECT profile, kind FROM seen WHERE server=?", server)}

    def content(self, digest: str) -> bytes | None:
        rows = self._rows("SELECT content FROM contents WHERE digest=?", digest)
        return rows[0][0] if rows else None

    def history(self, server: str | None = None, limit: int = 100) -> list[PinDecision]:
        """Newest first."""
        where, values = ("WHERE server=?", (server,)) if server is not None else ("", ())
        rows = self._rows(f"SELECT * FROM history {where} ORDER BY id DESC LIMIT ?", *values, limit)
        return [PinDecision(*row) for row in rows]

    def keep_contents(self, contents: list[tuple[str, bytes]]) -> None:
        """Store texts by their digest. Without a pin or a held item that names them they mean nothing."""
        with self.changing():
            self._run_many("INSERT OR IGNORE INTO contents VALUES (?,?)", contents)

    def write(self, writes: PinWrites) -> None:
        """Inside `changing`."""
        with self._lock, self._told():
            self._run_many("INSERT OR IGNORE INTO contents VALUES (?,?)", list(writes.contents.items()))
            self._run_many("INSERT OR IGNORE INTO seen VALUES (?,?,?)", writes.seen)
            self._run_many("INSERT OR REPLACE INTO pins VALUES (?,?,?,?,?,'listed')", writes.pins)
            self._run_many("UPDATE pins SET state=? WHERE server=? AND profile=? AND kind=? AND name=?", writes.states)
            self._run_many("INSERT OR REPLACE INTO held VALUES (?,?,?,?,?,?,?,?,?,?)", writes.held)
            self._run_many("DELETE FROM held WHERE server=? AND profile=? AND kind=? AND name=?", writes.released)
            self._run_many("INSERT INTO history VALUES (NULL,?,?,?,?,?,?,?,?,?)", writes.history)

    def forget(self, server: str) -> None:
        for table in ("pins", "held", "seen"):
            self._run(f"DELETE FROM {table} WHERE server=?", server)

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._lock, self._told():
            return self._db.execute(query, values).fetchall()

    def _run(self, statement: str, *values: object) -> None:
        with self._lock, self._told():
            self._db.execute(statement, values)

    def _run_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._db.executemany(statement, rows)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Without its pins no server may be shown: every fault of the file is an error, none is taken for "no pins"."""
        try:
            yield
        except sqlite3.Error as error:
            raise Unavailable(
                f"the pins in {self.path} cannot be used: {error}",
                "check the disk; if the file is damaged, move it away: every server is then pinned anew",
            ) from error
