"""The wire objects of a search, an answer, a document and an error, v1: what commands print and tools return.

Inside a version fields are added, never taken away or changed. A member that is unset is left out; null is a value.
Every object has its JSON Schema in this package (`schemas/`), printed by `kebab schema --wire NAME`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from dari.knowledge.document import CitationKind, ScoreKind, SearchMode, TrustLevel

ErrorCode = Literal[
    "config_invalid",
    "config_not_found",
    "invalid_input",
    "not_indexed",
    "not_found",
    "doc_not_found",
    "chunk_not_found",
    "span_not_supported",
    "stale_cursor",
    "readonly_mode",
    "needs_approval",
    "denied",
    "conflict",
    "store_locked",
    "store_newer",
    "store_damaged",
    "model_unreachable",
    "model_not_pulled",
    "unavailable",
    "timeout",
    "io_error",
    "ingest_fatal",
    "ingest_asset_error",
    "generic",
]
RefusalReason = Literal[
    "score_gate",
    "llm_self_judge",
    "no_index",
    "no_chunks",
    "llm_stream_aborted",
    "multi_hop_decompose_failed",
    "nli_verification_failed",
    "nli_model_unavailable",
    "verification_failed",
]
FetchKind = Literal["chunk", "doc", "span"]
Timestamp = Annotated[str, Meta(description="RFC 3339, UTC", extra_json_schema={"format": "date-time"})]
Rank = Annotated[int, Meta(ge=1)]


class ErrorV1(Struct, frozen=True, kw_only=True):
    """A failure: which one, what was wrong, and the next step."""

    code: ErrorCode
    message: str
    details: dict[str, Any] = {}
    hint: str | UnsetType = UNSET
    schema_version: Literal["error.v1"] = "error.v1"


class CitationV1(Struct, frozen=True, kw_only=True):
    """Where a passage stands. `uri` is the path with a W3C media fragment: `notes.md#L12-L34`, `paper.pdf#p=3`."""

    kind: CitationKind
    path: str
    uri: str
    indexed_at: Timestamp
    stale: bool
    start: int | UnsetType = UNSET
    end: int | UnsetType = UNSET
    section: str | UnsetType = UNSET
    page: int | UnsetType = UNSET
    x: int | UnsetType = UNSET
    y: int | UnsetType = UNSET
    w: int | UnsetType = UNSET
    h: int | UnsetType = UNSET
    model: str | UnsetType = UNSET
    start_ms: int | UnsetType = UNSET
    end_ms: int | UnsetType = UNSET
    speaker: str | UnsetType = UNSET
    line_start: int | UnsetType = UNSET
    line_end: int | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    lang: str | UnsetType = UNSET
    schema_version: Literal["citation.v1"] = "citation.v1"


class RetrievalScores(Struct, frozen=True, kw_only=True):
    """Which half found the passage, with its own score and rank; null where that half did not find it."""

    method: SearchMode
    fusion_score: float
    lexical_score: float | None = None
    vector_score: float | None = None
    lexical_rank: int | None = None
    vector_rank: int | None = None


class SearchHitV1(Struct, frozen=True, kw_only=True):
    """One passage that a search found."""

    rank: Rank
    score: float
    score_kind: ScoreKind | UnsetType = UNSET
    chunk_id: str
    doc_id: str
    doc_path: str
    heading_path: tuple[str, ...]
    snippet: str
    citation: CitationV1
    retrieval: RetrievalScores
    index_version: str
    chunker_version: str
    indexed_at: Timestamp
    stale: bool
    section_label: str | UnsetType = UNSET
    snippet_full_text: bool | UnsetType = UNSET
    highlights: tuple[tuple[int, int], ...] | UnsetType = UNSET
    matched_sentence: str | UnsetType = UNSET
    embedding_model: str | UnsetType = UNSET
    repo: str | UnsetType = UNSET
    code_lang: str | UnsetType = UNSET
    source_id: str | UnsetType = UNSET
    trust_level: TrustLevel | UnsetType = UNSET
    schema_version: Literal["search_hit.v1"] = "search_hit.v1"


class SearchTiming(Struct, frozen=True, kw_only=True):
    lexical_ms: float
    vector_ms: float
    fusion_ms: float
    total_ms: float


class TracedHit(Struct, frozen=True, kw_only=True):
    chunk_id: str
    score: float
    rank: Rank


class SearchTrace(Struct, frozen=True, kw_only=True):
    """What each half found before fusion, and how long each step took."""

    lexical: tuple[TracedHit, ...]
    vector: tuple[TracedHit, ...]
    rrf_inputs: tuple[TracedHit, ...]
    timing: SearchTiming
    terms: tuple[str, ...] | UnsetType = UNSET
    corrections: dict[str, tuple[str, ...]] | UnsetType = UNSET


class SearchResponseV1(Struct, frozen=True, kw_only=True):
    """The hits of a query. `hint` says what was missing, such as the model that hybrid search needs."""

    hits: tuple[SearchHitV1, ...]
    next_cursor: str | None
    truncated: bool
    mode: SearchMode | UnsetType = UNSET
    degraded: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    trace: SearchTrace | UnsetType = UNSET
    schema_version: Literal["search_response.v1"] = "search_response.v1"


class BulkSearchItemV1(Struct, frozen=True, kw_only=True):
    """One query of many: `response` or `error`, never both."""

    index: int
    query: str
    response: SearchResponseV1 | UnsetType = UNSET
    error: ErrorV1 | UnsetType = UNSET
    schema_version: Literal["bulk_search_item.v1"] = "bulk_search_item.v1"


class BulkSearchResponseV1(Struct, frozen=True, kw_only=True):
    items: tuple[BulkSearchItemV1, ...]
    succeeded: int
    failed: int
    schema_version: Literal["bulk_search_response.v1"] = "bulk_search_response.v1"


class AnswerCitation(Struct, frozen=True, kw_only=True):
    marker: Annotated[str, Meta(pattern=r"^\[#\d{1,3}\]$")]
    citation: CitationV1
    quote: str | UnsetType = UNSET
    chunk_id: str | UnsetType = UNSET


class AnswerModel(Struct, frozen=True, kw_only=True):
    id: str
    provider: str


class AnswerRetrieval(Struct, frozen=True, kw_only=True):
    trace_id: str
    mode: SearchMode
    k: int
    score_gate: float
    top_score: float
    chunks_returned: int
    chunks_used: int


class AnswerUsage(Struct, frozen=True, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    latency_ms: int


class AnswerHop(Struct, frozen=True, kw_only=True):
    """One step of a multi-hop answer."""

    hop: int
    question: str
    chunks: int
    decision: str


class AnswerVerification(Struct, frozen=True, kw_only=True):
    nli_score: float | None = None
    nli_threshold: float | None = None
    nli_passed: bool | None = None
    markers_ok: bool | UnsetType = UNSET
    numbers_ok: bool | UnsetType = UNSET
    quotes_ok: bool | UnsetType = UNSET


class AnswerV1(Struct, frozen=True, kw_only=True):
    """An answer with its citations; `grounded` is false when the documents do not hold one."""

    answer: str
    citations: tuple[AnswerCitation, ...]
    grounded: bool
    model: AnswerModel
    prompt_template_version: str
    retrieval: AnswerRetrieval
    usage: AnswerUsage
    created_at: Timestamp
    refusal_reason: RefusalReason | None = None
    session_id: str | UnsetType = UNSET
    resolved_query: str | UnsetType = UNSET
    embedding: str | UnsetType = UNSET
    hops: tuple[AnswerHop, ...] | UnsetType = UNSET
    verification: AnswerVerification | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    schema_version: Literal["answer.v1"] = "answer.v1"


class AnswerEventV1(Struct, frozen=True, kw_only=True):
    """A line of `kebab ask --stream --json` on stderr."""

    kind: Literal["retrieval_done", "token", "final"]
    ts: Timestamp
    hits: tuple[SearchHitV1, ...] | UnsetType = UNSET
    delta: str | UnsetType = UNSET
    answer: AnswerV1 | UnsetType = UNSET
    schema_version: Literal["answer_event.v1"] = "answer_event.v1"


class DocSummaryV1(Struct, frozen=True, kw_only=True):
    doc_id: str
    doc_path: str
    title: str
    media: str
    lang: str
    chunk_count: int
    byte_len: int
    indexed_at: Timestamp
    stale: bool
    tags: tuple[str, ...]
    trust_level: TrustLevel
    source_id: str | UnsetType = UNSET
    asset_id: str | UnsetType = UNSET
    repo: str | UnsetType = UNSET
    code_lang: str | UnsetType = UNSET
    modified_at: Timestamp | UnsetType = UNSET
    block_count: int | UnsetType = UNSET
    parser_version: str | UnsetType = UNSET
    chunker_version: str | UnsetType = UNSET
    schema_version: Literal["doc_summary.v1"] = "doc_summary.v1"


class DocListV1(Struct, frozen=True, kw_only=True):
    docs: tuple[DocSummaryV1, ...]
    next_cursor: str | None
    schema_version: Literal["doc_list.v1"] = "doc_list.v1"


class ChunkInspectionV1(Struct, frozen=True, kw_only=True):
    """A chunk as it is stored."""

    chunk_id: str
    doc_id: str
    doc_path: str
    ordinal: int
    heading_path: tuple[str, ...]
    text: str
    token_count: int
    citation: CitationV1
    chunker_version: str
    embedded: bool | UnsetType = UNSET
    embedding_model: str | UnsetType = UNSET
    terms: tuple[str, ...] | UnsetType = UNSET
    schema_version: Literal["chunk_inspection.v1"] = "chunk_inspection.v1"


class DocInspectionV1(Struct, frozen=True, kw_only=True):
    """A document with the chunks it was cut into."""

    doc: DocSummaryV1
    chunks: tuple[ChunkInspectionV1, ...]
    schema_version: Literal["doc_inspection.v1"] = "doc_inspection.v1"


class FetchedChunk(Struct, frozen=True, kw_only=True):
    chunk_id: str
    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    citation: CitationV1


class FetchResultV1(Struct, frozen=True, kw_only=True):
    """Text of a document, word for word: one chunk with its neighbours, the whole of it, or a span of lines."""

    kind: FetchKind
    doc_id: str
    doc_path: str
    indexed_at: Timestamp
    stale: bool
    truncated: bool
    chunk: FetchedChunk | UnsetType = UNSET
    context_before: tuple[FetchedChunk, ...] | UnsetType = UNSET
    context_after: tuple[FetchedChunk, ...] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    line_start: int | UnsetType = UNSET
    line_end: int | UnsetType = UNSET
    effective_end: int | UnsetType = UNSET
    schema_version: Literal["fetch_result.v1"] = "fetch_result.v1"
