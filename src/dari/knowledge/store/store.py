"""The record of truth, as a protocol. SQLite (`sqlite.py`) and PostgreSQL follow it; nothing here knows SQL.

Reads are thread-safe and see a committed state. Changes of documents happen inside `with store.write() as transaction`:
all of it or nothing. The writer lock must be held for that (`dari.knowledge.store.lock`). A transaction that changes
documents raises the corpus revision by one. The journal (conversations, answers, runs) needs no lock.

Indexes follow by revision: an index at revision r is brought up to date by `changes_since(r)`, as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from dari.knowledge.document import Block, Chunk
from dari.knowledge.store.records import (
    EVERY_DOCUMENT,
    AnswerRecord,
    ChunkRecord,
    DocumentFilter,
    DocumentRecord,
    EvalRunRecord,
    FileFailure,
    FileState,
    IndexRow,
    IngestRunRecord,
    PendingChunk,
    RunStatus,
    SessionRecord,
    StoreStats,
    TurnRecord,
    VectorState,
)


class Changes(Struct, frozen=True):
    """What an index has to do to reach `revision`: delete `deleted` and `added`, then add `added`."""

    revision: int
    deleted: Sequence[int]
    added: Iterator[IndexRow]


class PutResult(Struct, frozen=True):
    """What became of a document's chunks: `added` have to be indexed, `deleted` are gone, and `moved` are those of
    `added` that an index has already, and has to delete first."""

    doc_no: int
    added: tuple[IndexRow, ...]
    deleted: tuple[int, ...]
    moved: tuple[int, ...]


class WriteTransaction(Protocol):
    """Changes that become visible together, at `revision`."""

    @property
    def revision(self) -> int:
        """The corpus revision after the commit."""
        ...

    def put_document(self, record: DocumentRecord, chunks: Sequence[Chunk], blocks: Sequence[Block] = ()) -> PutResult:
        """Add the document, or replace the one with its path. A chunk whose text is as before keeps its number, and
        so its vectors. Raises Conflict when another source has the path."""
        ...

    def touch_document(self, doc_no: int, mtime_ns: int, modified_at: str) -> None:
        """The file was written again with the same content."""
        ...

    def rename_document(self, doc_no: int, record: DocumentRecord, chunk_ids: Sequence[str]) -> PutResult:
        """Give a document the ids, path, source and times of `record`; chunks keep their numbers and texts."""
        ...

    def delete_document(self, doc_no: int) -> PutResult:
        """Forget the document and its chunks."""
        ...

    def put_failure(self, failure: FileFailure) -> None: ...

    def delete_failure(self, path: str) -> None: ...

    def put_vectors(self, model_key: str, dim: int, chunk_nos: Sequence[int], committed_rows: int) -> None:
        """These chunks have a vector now, and the file of the model has this many rows that count.

        Chunks that were deleted meanwhile are left out.
        """
        ...

    def delete_vectors(self, model_key: str = "") -> None:
        """Forget the vectors of one model, or of all."""
        ...

    def purge_tombstones(self, revision: int) -> None:
        """Forget which chunks went at this revision and before: no index is older any more."""
        ...

    def set_kv(self, key: str, value: str) -> None: ...


class Journal(Protocol):
    """Conversations, answers and runs. Writing needs no writer lock and leaves the corpus revision alone."""

    def put_turn(self, session_id: str, question: str, standalone: str, answer: str) -> TurnRecord:
        """Append to the conversation, which is made where it does not exist."""
        ...

    def session(self, session_id: str) -> SessionRecord | None: ...

    def turns(self, session_id: str, limit: int = 20) -> list[TurnRecord]:
        """The last ones, in order."""
        ...

    def delete_session(self, session_id: str) -> bool: ...

    def put_answer(self, record: AnswerRecord) -> None: ...

    def answers(self, limit: int = 100) -> list[AnswerRecord]:
        """The newest first."""
        ...

    def put_eval_run(self, record: EvalRunRecord) -> None: ...

    def eval_run(self, run_id: str) -> EvalRunRecord | None: ...

    def eval_runs(self, limit: int = 100) -> list[EvalRunRecord]:
        """The newest first."""
        ...

    def begin_run(self, scope: str) -> int:
        """The number of a new ingest run."""
        ...

    def end_run(self, run_no: int, status: RunStatus, report: str) -> None: ...

    def ingest_runs(self, limit: int = 20) -> list[IngestRunRecord]:
        """The newest first."""
        ...


class Store(Protocol):
    """Documents, chunks and vectors' bookkeeping, and the journal of what was asked and run."""

    @property
    def journal(self) -> Journal: ...

    @property
    def is_readonly(self) -> bool: ...

    def close(self) -> None: ...

    # Documents and chunks

    def revision(self) -> int:
        """Raised by every change of a document; 0 for an empty store."""
        ...

    def chunks(self, chunk_nos: Iterable[int]) -> dict[int, ChunkRecord]:
        """Those that exist."""
        ...

    def documents(self, doc_nos: Iterable[int]) -> dict[int, DocumentRecord]:
        """Those that exist."""
        ...

    def chunk_by_id(self, chunk_id: str) -> ChunkRecord | None: ...

    def document_by_id(self, doc_id: str) -> DocumentRecord | None: ...

    def document_by_path(self, path: str) -> DocumentRecord | None: ...

    def chunks_of(self, doc_no: int, first: int = 0, last: int | None = None) -> list[ChunkRecord]:
        """The chunks of a document in order; `first` and `last` are ordinals, both included."""
        ...

    def blocks_of(self, doc_no: int) -> tuple[Block, ...]:
        """The document as it was parsed."""
        ...

    def list_documents(
        self, where: DocumentFilter = EVERY_DOCUMENT, after: str = "", limit: int = 100
    ) -> list[DocumentRecord]:
        """By path; `after` is the last path of the page before."""
        ...

    def doc_nos_of(self, where: DocumentFilter) -> list[int]: ...

    def chunk_nos_of(self, where: DocumentFilter) -> list[int]:
        """Ascending."""
        ...

    def changes_since(self, revision: int) -> Changes:
        """What came and went after this revision, of one committed state; 0 names everything."""
        ...

    def stats(self, stale_before: str = "") -> StoreStats:
        """`stale_before`: documents indexed before this time are counted as stale."""
        ...

    # Files

    def file_state(self, path: str) -> FileState | None: ...

    def file_states(self, source_id: str, below: str = "") -> Iterator[FileState]:
        """Of all documents of a source; `below` is the path of a folder or file."""
        ...

    def asset_ids(self) -> set[str]: ...

    def source_ids(self) -> set[str]: ...

    def failure(self, path: str) -> FileFailure | None: ...

    def failures(self, only_ocr: bool = False, limit: int = 1000) -> list[FileFailure]: ...

    # Vectors

    def vector_state(self, model_key: str) -> VectorState | None:
        """None when the model has no vectors here."""
        ...

    def vector_models(self) -> list[str]: ...

    def pending_chunks(self, model_key: str, limit: int, before: int = 0) -> list[PendingChunk]:
        """Chunks that have no vector of this model, the newest first; with `before` only those with a lower number,
        so that a loop does not look at the same ones again."""
        ...

    def embedded_chunks(self, model_key: str) -> list[int]:
        """Numbers of the chunks that have a vector of this model, ascending."""
        ...

    # Settings of the store itself

    def kv(self, key: str, default: str = "") -> str: ...

    def write(self) -> AbstractContextManager[WriteTransaction]: ...
