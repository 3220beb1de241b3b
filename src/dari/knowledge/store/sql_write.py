"""Changes of documents, inside a transaction that the store opens and ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from dari.errors import Conflict
from dari.knowledge.document import Block, Chunk
from dari.knowledge.store.records import DocumentRecord, FileFailure, IndexRow, title_text, utc_text
from dari.knowledge.store.rows import (
    DOCUMENT_COLUMNS,
    SqlConnection,
    decode_words,
    document_row,
    encode_blocks,
    encode_location,
    encode_words,
    hash_text,
)
from dari.knowledge.store.store import PutResult

MAX_TAG_CHARS = 600
"""A longer one is shown and not searched for: PostgreSQL refuses more than 2,704 bytes in an index."""
_UPDATE_DOCUMENT = "UPDATE documents SET ({}) = ({}) WHERE doc_no = ?".format(
    DOCUMENT_COLUMNS, ",".join("?" * len(DocumentRecord.__struct_fields__))
)
_INSERT_DOCUMENT = "INSERT INTO documents ({}) VALUES ({}) RETURNING doc_no".format(
    DOCUMENT_COLUMNS.removeprefix("doc_no, "), ",".join("?" * (len(DocumentRecord.__struct_fields__) - 1))
)
_INSERT_CHUNK = (
    "INSERT INTO chunks (chunk_no, chunk_id, doc_no, ordinal, heading_path, location, token_count, text_hash,"
    " added_rev, text) VALUES (?,?,?,?,?,?,?,?,?,?)"
)
_MOVE_CHUNK = (
    "UPDATE chunks SET chunk_id = ?, ordinal = ?, heading_path = ?, location = ?, token_count = ?, added_rev = ?"
    " WHERE chunk_no = ?"
)

_PUT_BLOCKS = "INSERT INTO blocks VALUES (?,?) ON CONFLICT (doc_no) DO UPDATE SET data = excluded.data"
_PUT_FAILURE = (
    "INSERT INTO failures VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (path) DO UPDATE SET source_id = excluded.source_id,"
    " byte_len = excluded.byte_len, mtime_ns = excluded.mtime_ns, parser_version = excluded.parser_version,"
    " reason = excluded.reason, is_ocr = excluded.is_ocr, failed_at = excluded.failed_at"
)
_PUT_MODEL = (
    "INSERT INTO vector_models (model_key, dim, committed_rows, updated_at) VALUES (?,?,?,?) ON CONFLICT (model_key)"
    " DO UPDATE SET dim = excluded.dim, committed_rows = excluded.committed_rows, updated_at = excluded.updated_at"
    " RETURNING model_no"
)
_PUT_EMBEDDING = "INSERT INTO embeddings SELECT ?, chunk_no FROM chunks WHERE chunk_no = ? ON CONFLICT DO NOTHING"
_PUT_TOMBSTONE = "INSERT INTO tombstones VALUES (?,?) ON CONFLICT (chunk_no) DO UPDATE SET rev = excluded.rev"
PUT_KV = "INSERT INTO kv VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class SqlTransaction:
    """What `WriteTransaction` promises; how chunks are numbered differs between databases."""

    def __init__(self, connection: SqlConnection) -> None:
        self._db = connection
        self._revision = int(self._one("SELECT value FROM kv WHERE key = 'corpus_revision'"))
        self._has_changed = False

    @property
    def revision(self) -> int:
        return self._revision

    def put_document(self, record: DocumentRecord, chunks: Sequence[Chunk], blocks: Sequence[Block] = ()) -> PutResult:
        self._change()
        record = msgspec.structs.replace(record, chunk_count=len(chunks), block_count=len(blocks) or record.block_count)
        known = self._db.execute(
            "SELECT doc_no, source_id, title FROM documents WHERE path = ?", (record.path,)
        ).fetchone()
        if known is None:
            doc_no: int = self._db.execute(_INSERT_DOCUMENT, document_row(record)[1:]).fetchone()[0]
        else:
            doc_no = known[0]
            if known[1] != record.source_id:
                raise Conflict(
                    f"sources {known[1]!r} and {record.source_id!r} both have a document {record.path}",
                    "rename the source, or the folder of that name",
                )
            record = msgspec.structs.replace(record, doc_no=doc_no)
            self._db.execute(_UPDATE_DOCUMENT, (*document_row(record), doc_no))
            self._db.execute("DELETE FROM document_tags WHERE doc_no = ?", (doc_no,))
        self._db.executemany(
            "INSERT INTO document_tags VALUES (?,?) ON CONFLICT DO NOTHING",
            [(tag, doc_no) for tag in record.tags if len(tag) <= MAX_TAG_CHARS],
        )
        if blocks:
            self._db.execute(_PUT_BLOCKS, (doc_no, encode_blocks(blocks)))
        else:
            self._db.execute("DELETE FROM blocks WHERE doc_no = ?", (doc_no,))
        is_same_title = known is not None and known[2] == record.title
        return self._put_chunks(doc_no, record, chunks, known is not None, is_same_title)

    def _put_chunks(
        self, doc_no: int, record: DocumentRecord, chunks: Sequence[Chunk], has_old: bool, is_same_title: bool
    ) -> PutResult:
        old: dict[bytes, list[tuple[int, str, int]]] = defaultdict(list)
        if has_old:
            rows = self._db.execute(
                "SELECT text_hash, chunk_no, heading_path, added_rev FROM chunks WHERE doc_no = ?"
                " ORDER BY ordinal DESC",
                (doc_no,),
            )
            for key, *rest in rows.fetchall():
                old[key].append((rest[0], rest[1], rest[2]))
            # Ids are unique, and a chunk may take the one that its neighbour has until the next statement.
            self._db.execute("UPDATE chunks SET chunk_id = 'moving-' || chunk_no WHERE doc_no = ?", (doc_no,))
        next_no = self._next_chunk_no()
        fresh: list[tuple[Any, ...]] = []
        moved: list[tuple[Any, ...]] = []
        added: list[IndexRow] = []
        again: list[int] = []
        for chunk in chunks:
            key = hash_text(chunk.text)
            headings = encode_words(chunk.heading_path)
            location = encode_location(chunk.location)
            row = IndexRow(0, doc_no, chunk.text, title_text(record.title, chunk.heading_path, record.path))
            if before := old[key].pop() if old.get(key) else None:
                number, old_headings, added_rev = before
                is_as_indexed = is_same_title and headings == old_headings
                moved.append(
                    (
                        chunk.chunk_id,
                        chunk.ordinal,
                        headings,
                        location,
                        chunk.token_count,
                        added_rev if is_as_indexed else self._revision,
                        number,
                    )
                )
                if not is_as_indexed:
                    added.append(msgspec.structs.replace(row, chunk_no=number))
                    again.append(number)
                continue
            fresh.append(
                (
                    next_no,
                    chunk.chunk_id,
                    doc_no,
                    chunk.ordinal,
                    headings,
                    location,
                    chunk.token_count,
                    key,
                    self._revision,
                    chunk.text,
                )
            )
            added.append(msgspec.structs.replace(row, chunk_no=next_no))
            next_no += 1
        gone = tuple(number for left in old.values() for number, _, _ in left)
        self._delete_chunks(gone)
        self._db.executemany(_MOVE_CHUNK, moved)
        self._db.executemany(_INSERT_CHUNK, fresh)
        if fresh:
            self._note_last_chunk_no(next_no - 1)
        return PutResult(doc_no, tuple(added), gone, tuple(again))

    def touch_document(self, doc_no: int, mtime_ns: int, modified_at: str) -> None:
        self._db.execute(
            "UPDATE documents SET mtime_ns = ?, modified_at = ? WHERE doc_no = ?", (mtime_ns, modified_at, doc_no)
        )

    def rename_document(self, doc_no: int, record: DocumentRecord, chunk_ids: Sequence[str]) -> PutResult:
        self._change()
        kept = self._db.execute(
            "SELECT chunk_no, text, heading_path FROM chunks WHERE doc_no = ? ORDER BY ordinal", (doc_no,)
        ).fetchall()
        if len(kept) != len(chunk_ids):
            raise Conflict(f"document {doc_no} has {len(kept)} chunks, got {len(chunk_ids)} ids")
        self._db.execute(_UPDATE_DOCUMENT, (*document_row(msgspec.structs.replace(record, doc_no=doc_no)), doc_no))
        self._db.executemany(
            "UPDATE chunks SET chunk_id = ?, added_rev = ? WHERE chunk_no = ?",
            [(chunk_id, self._revision, row[0]) for chunk_id, row in zip(chunk_ids, kept, strict=True)],
        )
        added = tuple(
            IndexRow(number, doc_no, text, title_text(record.title, decode_words(headings), record.path))
            for number, text, headings in kept
        )
        return PutResult(doc_no, added, (), tuple(row[0] for row in kept))

    def delete_document(self, doc_no: int) -> PutResult:
        self._change()
        rows = self._db.execute("SELECT chunk_no FROM chunks WHERE doc_no = ?", (doc_no,)).fetchall()
        gone = tuple(row[0] for row in rows)
        self._delete_chunks(gone)
        self._db.execute("DELETE FROM documents WHERE doc_no = ?", (doc_no,))
        return PutResult(doc_no, (), gone, ())

    def put_failure(self, failure: FileFailure) -> None:
        row = (
            failure.path,
            failure.source_id,
            failure.byte_len,
            failure.mtime_ns,
            failure.parser_version,
            failure.reason,
            int(failure.is_ocr),
            failure.failed_at or utc_text(),
        )
        self._db.execute(_PUT_FAILURE, row)

    def delete_failure(self, path: str) -> None:
        self._db.execute("DELETE FROM failures WHERE path = ?", (path,))

    def put_vectors(self, model_key: str, dim: int, chunk_nos: Sequence[int], committed_rows: int) -> None:
        model_no = self._one(_PUT_MODEL, model_key, dim, committed_rows, utc_text())
        self._db.executemany(_PUT_EMBEDDING, [(model_no, number) for number in chunk_nos])

    def delete_vectors(self, model_key: str = "") -> None:
        self._db.execute("DELETE FROM vector_models WHERE ? = '' OR model_key = ?", (model_key, model_key))

    def purge_tombstones(self, revision: int) -> None:
        self._db.execute("DELETE FROM tombstones WHERE rev <= ?", (revision,))

    def set_kv(self, key: str, value: str) -> None:
        if key == "corpus_revision":
            raise ValueError("the store counts its revision itself")
        self._db.execute(PUT_KV, (key, value))

    def _change(self) -> None:
        """Documents change: the revision goes up by one, once a transaction."""
        if not self._has_changed:
            self._has_changed = True
            self._revision += 1
            self._db.execute("UPDATE kv SET value = ? WHERE key = 'corpus_revision'", (str(self._revision),))

    def _delete_chunks(self, numbers: Sequence[int]) -> None:
        rows = [(number, self._revision) for number in numbers]
        self._db.executemany(_PUT_TOMBSTONE, rows)
        self._db.executemany("DELETE FROM chunks WHERE chunk_no = ?", [(number,) for number in numbers])

    def _next_chunk_no(self) -> int:
        """Higher than any number that was ever given."""
        raise NotImplementedError

    def _note_last_chunk_no(self, number: int) -> None:
        """Chunks up to this number were just inserted."""

    def _one(self, sql: str, *values: Any) -> Any:
        row = self._db.execute(sql, values).fetchone()
        return row[0] if row else None
