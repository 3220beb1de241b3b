"""What a store holds, as data.

Numbers (`doc_no`, `chunk_no`) are the store's own and never reused; ids are hashes of content. Times are RFC 3339 in
UTC, to the millisecond, so that they sort as text.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from dari.knowledge.document import Location, Media, TrustLevel

RunStatus = Literal["running", "completed", "aborted", "failed"]


class DocumentRecord(Struct, frozen=True, kw_only=True):
    """One indexed file. `doc_no` is 0 until the store has given it one."""

    doc_no: int = 0
    doc_id: str
    path: str  # unique in the store, `/` between its parts; of a named source it begins with the source's id
    source_id: str = "default"
    source_type: str = "note"
    source_uri: str = ""  # where a single file or stdin came from
    asset_id: str  # hash of the file's bytes
    media: Media
    title: str = ""
    lang: str = "und"
    tags: tuple[str, ...] = ()
    trust_level: TrustLevel = "primary"
    repo: str = ""
    code_lang: str = ""
    byte_len: int = 0
    mtime_ns: int = 0
    block_count: int = 0
    chunk_count: int = 0
    parser_version: str = ""
    chunker_version: str = ""
    policy_hash: str = ""  # of the chunking settings
    ocr_pages: int = 0
    ocr_ms: int = 0
    indexed_at: str = ""
    modified_at: str = ""


class ChunkRecord(Struct, frozen=True, kw_only=True):
    """One passage of a document."""

    chunk_no: int
    chunk_id: str
    doc_no: int
    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    location: Location
    token_count: int


class DocumentFilter(Struct, frozen=True, kw_only=True):
    """Which documents: every field that is set must hold, one of the values of each is enough (tags: all of them)."""

    tags: tuple[str, ...] = ()
    langs: tuple[str, ...] = ()
    path_glob: str = ""  # `*` and `?` stay inside one folder, `**` crosses folders
    trust_min: TrustLevel | None = None
    media: tuple[str, ...] = ()
    ingested_after: str = ""
    doc_ids: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()
    code_langs: tuple[str, ...] = ()
    source_types: tuple[str, ...] = ()
    source_ids: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == EVERY_DOCUMENT


EVERY_DOCUMENT = DocumentFilter()


class FileState(Struct, frozen=True):
    """What an ingest compares a file on disk with."""

    doc_no: int
    path: str
    source_id: str
    byte_len: int
    mtime_ns: int
    asset_id: str
    versions: tuple[str, str, str]  # parser, chunker, policy


class FileFailure(Struct, frozen=True, kw_only=True):
    """A file that was not parsed; it is tried again when it, or the parser, has changed. `reason` begins with a word
    for programs (`FailureReason`), then `: ` and a sentence. `parser_version` is what tried it, with its limits where
    they count, and behind `#` how often."""

    path: str
    source_id: str
    byte_len: int
    mtime_ns: int
    parser_version: str = ""
    reason: str
    is_ocr: bool = False
    failed_at: str = ""


class IndexRow(Struct, frozen=True):
    """A chunk as the indexes take it. `title_text` is what is searched with a boost: title, headings and path."""

    chunk_no: int
    doc_no: int
    text: str
    title_text: str


class PendingChunk(Struct, frozen=True):
    """A chunk without a vector of a model. `same_as` is a chunk with the same text that has one, or 0."""

    chunk_no: int
    text: str
    text_hash: bytes
    same_as: int = 0


class VectorState(Struct, frozen=True):
    """How far the vectors of one model are."""

    model_key: str
    dim: int
    committed_rows: int
    embedded_chunks: int
    pending_chunks: int
    updated_at: str


class StoreStats(Struct, frozen=True, kw_only=True):
    """Counts for `schema.v1` and `doctor.v1`."""

    doc_count: int
    chunk_count: int
    asset_count: int
    last_ingest_at: str | None
    media_breakdown: dict[str, int]
    lang_breakdown: dict[str, int]
    code_lang_breakdown: dict[str, int]
    code_lang_chunk_breakdown: dict[str, int]
    repo_breakdown: dict[str, int]
    source_breakdown: dict[str, int]
    parser_versions: tuple[str, ...]
    chunker_versions: tuple[str, ...]
    stale_doc_count: int
    store_bytes: int


class SessionRecord(Struct, frozen=True, kw_only=True):
    """A conversation of `ask`."""

    session_id: str
    created_at: str
    updated_at: str
    turn_count: int


class TurnRecord(Struct, frozen=True, kw_only=True):
    """A question of a conversation with its answer."""

    session_id: str
    ordinal: int  # from 0
    question: str
    standalone: str  # the question with what it refers to filled in
    answer: str  # answer.v1 as JSON
    created_at: str


class AnswerRecord(Struct, frozen=True, kw_only=True):
    """An answer that was given."""

    trace_id: str
    question: str
    answer: str  # answer.v1 as JSON
    grounded: bool
    created_at: str


class EvalRunRecord(Struct, frozen=True, kw_only=True):
    """A run of `kebab eval`."""

    run_id: str
    dataset: str
    settings: str  # JSON
    report: str  # JSON
    created_at: str


class IngestRunRecord(Struct, frozen=True, kw_only=True):
    """One ingest. A run that is `running` while nobody holds the writer lock was killed."""

    run_no: int
    scope: str
    status: RunStatus
    started_at: str
    finished_at: str = ""
    report: str = ""  # ingest_report.v1 as JSON


def title_text(title: str, heading_path: tuple[str, ...], path: str) -> str:
    """What is searched with a boost, a line each."""
    return "\n".join((title, *heading_path, path))


def utc_text(seconds: float | None = None) -> str:
    """This time since 1970, or now, as every record has it."""
    if seconds is None:
        return to_timestamp(datetime.now(UTC))
    try:
        return to_timestamp(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):  # a file may say that it is of the year 60000
        return to_timestamp((datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC))


def to_timestamp(moment: datetime) -> str:
    """A moment of UTC as the store and the wire write it: milliseconds, `Z`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
