"""The store in one SQLite file (WAL): any number of readers, one writer.

Readers take a connection out of a pool for one call, so that every thread has its own while it reads. What is read and
written is in `sql.py` and `sql_write.py`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dari.files.globs import path_matches
from dari.knowledge.errors import ReadonlyMode
from dari.knowledge.store import schema
from dari.knowledge.store.lock import writer_lock
from dari.knowledge.store.rows import SqlConnection
from dari.knowledge.store.sql import ROWS_AT_ONCE, SqlStore
from dari.knowledge.store.sql_journal import SqlJournal
from dari.knowledge.store.sql_write import SqlTransaction
from dari.knowledge.store.store import WriteTransaction
from dari.os_errors import name_file_in_errors

MIGRATION_WAIT_S = 10.0


class SqliteStore(SqlStore):
    """`open_store` makes one."""

    def __init__(self, path: Path, *, is_readonly: bool) -> None:
        self.path = path
        self._is_readonly = is_readonly
        self._pool: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._is_closed = False
        self.journal = SqlJournal(self._changing, self._rows)

    @property
    def is_readonly(self) -> bool:
        return self._is_readonly

    def close(self) -> None:
        """Readers that still run close their connection themselves."""
        self._is_closed = True
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        while self._pool:
            self._pool.pop().close()

    @contextmanager
    def write(self) -> Iterator[WriteTransaction]:
        with self._changing() as connection:
            yield _Transaction(connection)

    # Connections

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes: committed at the end, rolled back by any exception."""
        if self._is_readonly:
            raise ReadonlyMode("the store is open read-only", "run it again without --readonly and KEBAB_READONLY")
        with self._writing, name_file_in_errors(self.path):
            if self._is_closed:
                raise RuntimeError("the store is closed")
            if self._writer is None:
                self._writer = schema.connect(self.path, readonly=False)
            connection = self._writer
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has rolled it back already
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        connection = self._take()
        try:
            with name_file_in_errors(self.path):
                yield connection
        except BaseException:
            connection.close()
            raise
        if self._is_closed:
            connection.close()
        else:
            self._pool.append(connection)

    def _take(self) -> sqlite3.Connection:
        try:
            return self._pool.pop()
        except IndexError:
            pass
        connection = schema.connect(self.path, readonly=self._is_readonly)
        connection.execute("PRAGMA query_only = ON")
        connection.create_function("path_matches", 2, path_matches, deterministic=True)
        return connection

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        connection = self._take()
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            connection.close()

    def _stream(self, connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> Iterator[Any]:
        cursor = connection.execute(sql, values)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield from rows

    def _match_glob(self, glob: str) -> tuple[str, str]:
        return "path_matches(d.path, ?)", glob

    def _store_bytes(self, connection: SqlConnection) -> int:
        pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
        page_bytes: int = connection.execute("PRAGMA page_size").fetchone()[0]
        return pages * page_bytes


class _Transaction(SqlTransaction):
    def _next_chunk_no(self) -> int:
        return (self._one("SELECT max(seq) FROM sqlite_sequence WHERE name = 'chunks'") or 0) + 1


def open_store(path: Path, *, is_readonly: bool = False, lock: Path | None = None) -> SqliteStore:
    """The store that is there, for reading, and for conversations and runs. A store of an older version is migrated
    under the writer lock `lock`, or by the caller that holds it (`make_store`)."""
    version = schema.version_of(path)
    schema.check_version(path, version)
    if version < len(schema.MIGRATIONS):
        if is_readonly or lock is None:
            raise ReadonlyMode(
                f"{path} has store version {version}, and reading it needs {len(schema.MIGRATIONS)}",
                "run `kebab doctor` once without --readonly: it brings the store to this version",
            )
        with writer_lock(lock, MIGRATION_WAIT_S):
            schema.make_or_migrate(path)
    return SqliteStore(path, is_readonly=is_readonly)


def make_store(path: Path) -> tuple[SqliteStore, int]:
    """For the holder of the writer lock: make or migrate the store, and say which version it had (0: it is new)."""
    before, _ = schema.make_or_migrate(path)
    return SqliteStore(path, is_readonly=False), before
