"""What a store in SQLite and one in PostgreSQL have in common: every statement that reads, in SQL that both understand.

`sql_write.py` changes documents, `sql_journal.py` keeps conversations and runs; the subclasses own the connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from dari.knowledge.document import Block
from dari.knowledge.store.filters import conditions
from dari.knowledge.store.records import (
    EVERY_DOCUMENT,
    ChunkRecord,
    DocumentFilter,
    DocumentRecord,
    FileFailure,
    FileState,
    IndexRow,
    PendingChunk,
    StoreStats,
    VectorState,
    title_text,
)
from dari.knowledge.store.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    SqlConnection,
    chunk_of,
    decode_blocks,
    decode_words,
    document_of,
)
from dari.knowledge.store.store import Changes

_NUMBERS_AT_ONCE = 500
ROWS_AT_ONCE = 500


class SqlStore:
    """`Store` over connections that a subclass gives."""

    # Connections

    def _reading(self) -> AbstractContextManager[SqlConnection]:
        """A connection for one thread, for as long as it reads."""
        raise NotImplementedError

    def _snapshot(self) -> AbstractContextManager[SqlConnection]:
        """The same, and all that is read from it is of one committed state."""
        raise NotImplementedError

    def _stream(self, connection: Any, sql: str, values: Sequence[Any]) -> Iterator[Any]:
        """Rows of a long result, without holding all of them."""
        raise NotImplementedError

    def _match_glob(self, glob: str) -> tuple[str, str]:
        """A condition on `d.path` with one `?`, and its value."""
        raise NotImplementedError

    def _store_bytes(self, connection: SqlConnection) -> int:
        raise NotImplementedError

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with self._reading() as connection:
            return connection.execute(sql, values).fetchall()

    def _row(self, sql: str, *values: Any) -> Any:
        with self._reading() as connection:
            return connection.execute(sql, values).fetchone()

    def _by_numbers(self, table: str, columns: str, key: str, numbers: Iterable[int]) -> Iterator[Sequence[Any]]:
        wanted = list(numbers)
        for start in range(0, len(wanted), _NUMBERS_AT_ONCE):
            part = wanted[start : start + _NUMBERS_AT_ONCE]
            yield from self._rows(f"SELECT {columns} FROM {table} WHERE {key} IN ({','.join('?' * len(part))})", *part)

    # Documents and chunks

    def revision(self) -> int:
        return int(self.kv("corpus_revision", "0"))

    def chunks(self, chunk_nos: Iterable[int]) -> dict[int, ChunkRecord]:
        return {row[0]: chunk_of(row) for row in self._by_numbers("chunks", CHUNK_COLUMNS, "chunk_no", chunk_nos)}

    def documents(self, doc_nos: Iterable[int]) -> dict[int, DocumentRecord]:
        return {row[0]: document_of(row) for row in self._by_numbers("documents", DOCUMENT_COLUMNS, "doc_no", doc_nos)}

    def chunk_by_id(self, chunk_id: str) -> ChunkRecord | None:
        row = self._row(f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE chunk_id = ?", chunk_id)
        return chunk_of(row) if row else None

    def document_by_id(self, doc_id: str) -> DocumentRecord | None:
        row = self._row(f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE doc_id = ?", doc_id)
        return document_of(row) if row else None

    def document_by_path(self, path: str) -> DocumentRecord | None:
        row = self._row(f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE path = ?", path)
        return document_of(row) if row else None

    def chunks_of(self, doc_no: int, first: int = 0, last: int | None = None) -> list[ChunkRecord]:
        bound = -1 if last is None else last
        sql = f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE doc_no = ? AND ordinal >= ? AND (? < 0 OR ordinal <= ?)"
        return [chunk_of(row) for row in self._rows(f"{sql} ORDER BY ordinal", doc_no, first, bound, bound)]

    def blocks_of(self, doc_no: int) -> tuple[Block, ...]:
        row = self._row("SELECT data FROM blocks WHERE doc_no = ?", doc_no)
        return decode_blocks(row[0]) if row else ()

    def list_documents(
        self, where: DocumentFilter = EVERY_DOCUMENT, after: str = "", limit: int = 100
    ) -> list[DocumentRecord]:
        condition, values = conditions(where, self._match_glob)
        sql = f"SELECT {DOCUMENT_COLUMNS} FROM documents d WHERE path > ? AND {condition} ORDER BY path LIMIT ?"
        return [document_of(row) for row in self._rows(sql, after, *values, limit)]

    def doc_nos_of(self, where: DocumentFilter) -> list[int]:
        condition, values = conditions(where, self._match_glob)
        return [row[0] for row in self._rows(f"SELECT doc_no FROM documents d WHERE {condition} ORDER BY 1", *values)]

    def chunk_nos_of(self, where: DocumentFilter) -> list[int]:
        if where.is_empty:
            return [row[0] for row in self._rows("SELECT chunk_no FROM chunks ORDER BY 1")]
        condition, values = conditions(where, self._match_glob)
        sql = f"SELECT c.chunk_no FROM documents d JOIN chunks c USING (doc_no) WHERE {condition} ORDER BY 1"
        return [row[0] for row in self._rows(sql, *values)]

    def changes_since(self, revision: int) -> Changes:
        snapshot = ExitStack()
        connection = snapshot.enter_context(self._snapshot())
        try:
            now = int(connection.execute("SELECT value FROM kv WHERE key = 'corpus_revision'").fetchone()[0])
            gone = connection.execute("SELECT chunk_no FROM tombstones WHERE rev > ?", (revision,)).fetchall()
        except BaseException:
            snapshot.close()
            raise
        return Changes(now, [row[0] for row in gone], self._added(connection, snapshot, revision))

    def _added(self, connection: SqlConnection, snapshot: ExitStack, revision: int) -> Iterator[IndexRow]:
        """In pieces, and all of the state in which the caller's transaction began."""
        sql = (
            "SELECT c.chunk_no, c.doc_no, c.text, d.title, c.heading_path, d.path FROM chunks c JOIN documents d"
            " USING (doc_no) WHERE c.added_rev > ? ORDER BY c.chunk_no"
        )
        with snapshot:  # an iterator that was left half-way holds a transaction
            for number, doc_no, text, title, headings, path in self._stream(connection, sql, (revision,)):
                yield IndexRow(number, doc_no, text, title_text(title, decode_words(headings), path))

    def stats(self, stale_before: str = "") -> StoreStats:
        with self._snapshot() as connection:
            return _stats(connection, stale_before, self._store_bytes(connection))

    # Files

    def file_state(self, path: str) -> FileState | None:
        row = self._row(f"SELECT {_FILE_COLUMNS} FROM documents WHERE path = ?", path)
        return _file_state(row) if row else None

    def file_states(self, source_id: str, below: str = "") -> Iterator[FileState]:
        last = ""
        sql = f"SELECT {_FILE_COLUMNS} FROM documents WHERE source_id = ? AND path > ?"
        if below:
            sql += " AND (path = ? OR (path >= ? AND path < ?))"  # "0" follows "/"
        values = (below, f"{below}/", f"{below}0") if below else ()
        while rows := self._rows(f"{sql} ORDER BY path LIMIT {ROWS_AT_ONCE}", source_id, last, *values):
            yield from map(_file_state, rows)
            last = rows[-1][1]

    def asset_ids(self) -> set[str]:
        return {row[0] for row in self._rows("SELECT asset_id FROM documents")}

    def source_ids(self) -> set[str]:
        return {row[0] for row in self._rows("SELECT DISTINCT source_id FROM documents")}

    def failure(self, path: str) -> FileFailure | None:
        row = self._row(f"SELECT {_FAILURE_COLUMNS} FROM failures WHERE path = ?", path)
        return _failure(row) if row else None

    def failures(self, only_ocr: bool = False, limit: int = 1000) -> list[FileFailure]:
        sql = f"SELECT {_FAILURE_COLUMNS} FROM failures WHERE is_ocr >= ? ORDER BY path LIMIT ?"
        return [_failure(row) for row in self._rows(sql, int(only_ocr), limit)]

    # Vectors

    def vector_state(self, model_key: str) -> VectorState | None:
        sql = (
            "SELECT model_key, dim, committed_rows,"
            " (SELECT count(*) FROM embeddings e WHERE e.model_no = m.model_no),"
            " (SELECT count(*) FROM chunks), updated_at FROM vector_models m WHERE model_key = ?"
        )
        row = self._row(sql, model_key)
        return VectorState(row[0], row[1], row[2], row[3], row[4] - row[3], row[5]) if row else None

    def vector_models(self) -> list[str]:
        return [row[0] for row in self._rows("SELECT model_key FROM vector_models ORDER BY model_no")]

    def pending_chunks(self, model_key: str, limit: int, before: int = 0) -> list[PendingChunk]:
        sql = (
            "SELECT c.chunk_no, c.text, c.text_hash, coalesce((SELECT e.chunk_no FROM chunks o JOIN embeddings e"
            " ON e.model_no = ? AND e.chunk_no = o.chunk_no WHERE o.text_hash = c.text_hash LIMIT 1), 0)"
            " FROM chunks c WHERE (? = 0 OR c.chunk_no < ?) AND NOT EXISTS"
            " (SELECT 1 FROM embeddings e WHERE e.model_no = ? AND e.chunk_no = c.chunk_no)"
            " ORDER BY c.chunk_no DESC LIMIT ?"
        )
        with self._reading() as connection:
            model_no = _model_no(connection, model_key)
            values = (model_no, before, before, model_no, limit)
            return [PendingChunk(*row) for row in connection.execute(sql, values).fetchall()]

    def embedded_chunks(self, model_key: str) -> list[int]:
        with self._reading() as connection:
            model_no = _model_no(connection, model_key)
            sql = "SELECT chunk_no FROM embeddings WHERE model_no = ? ORDER BY 1"
            return [row[0] for row in connection.execute(sql, (model_no,)).fetchall()]

    # Settings of the store itself

    def kv(self, key: str, default: str = "") -> str:
        row = self._row("SELECT value FROM kv WHERE key = ?", key)
        return str(row[0]) if row else default


_FILE_COLUMNS = "doc_no, path, source_id, byte_len, mtime_ns, asset_id, parser_version, chunker_version, policy_hash"
_FAILURE_COLUMNS = "path, source_id, byte_len, mtime_ns, parser_version, reason, is_ocr, failed_at"


def _file_state(row: Sequence[Any]) -> FileState:
    return FileState(row[0], row[1], row[2], row[3], row[4], row[5], (row[6], row[7], row[8]))


def _failure(row: Sequence[Any]) -> FileFailure:
    return FileFailure(
        path=row[0],
        source_id=row[1],
        byte_len=row[2],
        mtime_ns=row[3],
        parser_version=row[4],
        reason=row[5],
        is_ocr=bool(row[6]),
        failed_at=row[7],
    )


def _model_no(connection: SqlConnection, model_key: str) -> int:
    row = connection.execute("SELECT model_no FROM vector_models WHERE model_key = ?", (model_key,)).fetchone()
    return int(row[0]) if row else -1


def _stats(connection: SqlConnection, stale_before: str, store_bytes: int) -> StoreStats:
    def one(sql: str, *values: Any) -> Any:
        return connection.execute(sql, values).fetchone()[0]

    def counted(column: str, value: str = "count(*)") -> dict[str, int]:
        sql = f"SELECT {column}, {value} FROM documents WHERE {column} <> '' GROUP BY 1 ORDER BY 2 DESC, 1"
        return dict(connection.execute(sql).fetchall())

    def distinct(column: str) -> tuple[str, ...]:
        sql = f"SELECT DISTINCT {column} FROM documents WHERE {column} <> '' ORDER BY 1"
        return tuple(row[0] for row in connection.execute(sql).fetchall())

    return StoreStats(
        doc_count=one("SELECT count(*) FROM documents"),
        chunk_count=one("SELECT count(*) FROM chunks"),
        asset_count=one("SELECT count(DISTINCT asset_id) FROM documents"),
        last_ingest_at=one("SELECT max(finished_at) FROM ingest_runs WHERE status = 'completed'"),
        media_breakdown=counted("media"),
        lang_breakdown=counted("lang"),
        code_lang_breakdown=counted("code_lang"),
        code_lang_chunk_breakdown=counted("code_lang", "CAST(sum(chunk_count) AS BIGINT)"),
        repo_breakdown=counted("repo"),
        source_breakdown=counted("source_id"),
        parser_versions=distinct("parser_version"),
        chunker_versions=distinct("chunker_version"),
        stale_doc_count=one("SELECT count(*) FROM documents WHERE indexed_at < ?", stale_before),
        store_bytes=store_bytes,
    )
