"""The tables of a SQLite store, and how a file is opened, checked and brought to this version."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from dari.knowledge.errors import DAMAGED_HINT, NotIndexed, StoreDamaged, StoreNewer
from dari.os_errors import name_file_in_errors

APPLICATION_ID = 0x6B656261  # "keba" at byte 68 of the file
BUSY_TIMEOUT_MS = 10_000
_SQLITE_DAMAGED = (11, 26)  # SQLITE_CORRUPT, SQLITE_NOTADB

# A step never changes: a store of today is what the next version finds. Append; the count is the store's version.
MIGRATIONS = (
    """
    CREATE TABLE documents (
        doc_no INTEGER PRIMARY KEY AUTOINCREMENT, doc_id TEXT NOT NULL UNIQUE, path TEXT NOT NULL UNIQUE,
        source_id TEXT NOT NULL, source_type TEXT NOT NULL, source_uri TEXT NOT NULL, asset_id TEXT NOT NULL,
        media TEXT NOT NULL, title TEXT NOT NULL, lang TEXT NOT NULL, tags TEXT NOT NULL, trust_level TEXT NOT NULL,
        repo TEXT NOT NULL, code_lang TEXT NOT NULL, byte_len INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        block_count INTEGER NOT NULL, chunk_count INTEGER NOT NULL, parser_version TEXT NOT NULL,
        chunker_version TEXT NOT NULL, policy_hash TEXT NOT NULL, ocr_pages INTEGER NOT NULL, ocr_ms INTEGER NOT NULL,
        indexed_at TEXT NOT NULL, modified_at TEXT NOT NULL);
    CREATE INDEX documents_source ON documents (source_id, path);
    CREATE TABLE document_tags (tag TEXT NOT NULL, doc_no INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
        PRIMARY KEY (tag, doc_no)) WITHOUT ROWID;
    CREATE INDEX document_tags_doc ON document_tags (doc_no);
    CREATE TABLE blocks (doc_no INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE, data BLOB NOT NULL);
    CREATE TABLE chunks (
        chunk_no INTEGER PRIMARY KEY AUTOINCREMENT, chunk_id TEXT NOT NULL UNIQUE,
        doc_no INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, ordinal INTEGER NOT NULL,
        heading_path TEXT NOT NULL, location TEXT NOT NULL, token_count INTEGER NOT NULL, text_hash BLOB NOT NULL,
        added_rev INTEGER NOT NULL, text TEXT NOT NULL);
    CREATE INDEX chunks_doc ON chunks (doc_no, ordinal);
    CREATE INDEX chunks_rev ON chunks (added_rev);
    CREATE INDEX chunks_text ON chunks (text_hash);
    CREATE TABLE tombstones (chunk_no INTEGER PRIMARY KEY, rev INTEGER NOT NULL);
    CREATE INDEX tombstones_rev ON tombstones (rev);
    CREATE TABLE failures (path TEXT PRIMARY KEY, source_id TEXT NOT NULL, byte_len INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL, parser_version TEXT NOT NULL, reason TEXT NOT NULL,
        is_ocr INTEGER NOT NULL, failed_at TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE vector_models (model_no INTEGER PRIMARY KEY AUTOINCREMENT, model_key TEXT NOT NULL UNIQUE,
        dim INTEGER NOT NULL, committed_rows INTEGER NOT NULL, updated_at TEXT NOT NULL);
    CREATE TABLE embeddings (model_no INTEGER NOT NULL REFERENCES vector_models ON DELETE CASCADE,
        chunk_no INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE, PRIMARY KEY (model_no, chunk_no)) WITHOUT ROWID;
    CREATE INDEX embeddings_chunk ON embeddings (chunk_no);
    CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    INSERT INTO kv VALUES ('corpus_revision', '0');
    CREATE TABLE sessions (session_id TEXT PRIMARY KEY, created_at TEXT NOT NULL, updated_at TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE turns (session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, ordinal INTEGER NOT NULL,
        question TEXT NOT NULL, standalone TEXT NOT NULL, answer TEXT NOT NULL, created_at TEXT NOT NULL,
        PRIMARY KEY (session_id, ordinal));
    CREATE TABLE answers (trace_id TEXT PRIMARY KEY, question TEXT NOT NULL, answer TEXT NOT NULL,
        grounded INTEGER NOT NULL, created_at TEXT NOT NULL);
    CREATE TABLE eval_runs (run_id TEXT PRIMARY KEY, dataset TEXT NOT NULL, settings TEXT NOT NULL,
        report TEXT NOT NULL, created_at TEXT NOT NULL);
    CREATE TABLE ingest_runs (run_no INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, status TEXT NOT NULL,
        started_at TEXT NOT NULL, finished_at TEXT NOT NULL, report TEXT NOT NULL);
    """,
)


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """A connection to a store that exists. Readers may share it one after the other, from any thread."""
    mode = "ro" if readonly else "rw"
    if readonly and not os.access(path.parent, os.W_OK) and not os.path.exists(f"{path}-wal"):
        mode = "ro&immutable=1"  # a medium on which WAL's shared memory cannot be made, so nobody writes either
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -8192")
        if not readonly:
            connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(path: Path) -> int:
    """The version of the store in this file. Raises NotIndexed where there is none, StoreDamaged for anything else."""
    if not path.exists():
        raise _nothing_indexed(path)
    with _damage_named(path):
        connection = connect(path, readonly=True)
        try:
            version = _own_version(path, connection)
        finally:
            connection.close()
    if version == 0:
        raise _nothing_indexed(path)
    return version


def check_version(path: Path, version: int, newest: int = len(MIGRATIONS)) -> None:
    """Refuse a store that a newer kebab made: this one would not see what it has not learned of."""
    if version > newest:
        raise StoreNewer(
            f"{path} has store version {version}, this kebab knows up to {newest}",
            "install the newer kebab, or name another data folder: `[store] data_dir`",
            store_version=version,
            supported=newest,
        )


def make_or_migrate(path: Path, migrations: Sequence[str] = MIGRATIONS) -> tuple[int, int]:
    """Bring the file to this version, one transaction a step; returns the version before (0: new) and now."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    with _damage_named(path):
        connection = connect(path, readonly=False)
        try:
            before = _own_version(path, connection)
            check_version(path, before, len(migrations))
            connection.execute("PRAGMA journal_mode = WAL")
            for number, step in enumerate(migrations[before:], before + 1):
                connection.executescript(
                    f"BEGIN IMMEDIATE; {step}; PRAGMA application_id = {APPLICATION_ID};"
                    f" PRAGMA user_version = {number}; COMMIT;"
                )
            return before, len(migrations)
        finally:
            connection.close()


def _own_version(path: Path, connection: sqlite3.Connection) -> int:
    """0 for an empty file."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    has_tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
    if (version or has_tables) and application != APPLICATION_ID:
        raise StoreDamaged(f"{path} is a database of another program", "name another data folder: `[store] data_dir`")
    return version


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        with name_file_in_errors(path):
            yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_DAMAGED:
            raise StoreDamaged(f"{path} cannot be read: {error}", DAMAGED_HINT) from error
        raise


def _nothing_indexed(path: Path) -> NotIndexed:
    return NotIndexed(f"nothing is indexed in {path.parent} yet", "run `kebab ingest --root FOLDER`")
