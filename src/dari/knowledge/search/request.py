"""What is asked of a search, and what it answers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from dari.knowledge.document import ScoreKind, SearchMode
from dari.knowledge.store.records import EVERY_DOCUMENT, ChunkRecord, DocumentFilter, DocumentRecord

DegradedReason = Literal["no_model", "no_vectors", "model_failed"]

MAX_K = 100
MAX_BULK_QUERIES = 100


class SearchRequest(Struct, frozen=True, kw_only=True):
    """One search. `k` is the size of a page; `cursor` is the `next_cursor` of the page before."""

    query: str
    k: int = 10
    mode: SearchMode = "hybrid"
    where: DocumentFilter = EVERY_DOCUMENT
    cursor: str = ""
    snippet_chars: int = 220
    max_tokens: int | None = None
    """What the snippets of all hits may hold together; a hit that does not fit ends the page."""
    trace: bool = False


class PassageSnippet(Struct, frozen=True):
    """A piece of a chunk around its best sentence. Spans are places in `text`."""

    text: str
    is_whole: bool
    highlights: tuple[tuple[int, int], ...]
    sentence: str
    """The sentence of the chunk that matches best, whole."""


class Retrieval(Struct, frozen=True, kw_only=True):
    """Which half found a hit. A rank is the place in that half's own list; a score may be there without one, since
    candidates of the lexical half get their cosine too."""

    method: SearchMode
    fusion_score: float
    lexical_score: float | None = None
    vector_score: float | None = None
    lexical_rank: int | None = None
    vector_rank: int | None = None


class Hit(Struct, frozen=True, kw_only=True):
    rank: int
    score: float
    score_kind: ScoreKind
    chunk: ChunkRecord
    document: DocumentRecord
    retrieval: Retrieval
    snippet: PassageSnippet
    matched_terms: tuple[str, ...]
    """The query's terms that the chunk has."""


class Timing(Struct, frozen=True, kw_only=True):
    lexical_ms: float
    vector_ms: float
    fusion_ms: float
    total_ms: float


class TraceEntry(Struct, frozen=True):
    """A candidate of one half, or of both after fusion."""

    chunk_id: str
    rank: int
    score: float


class RetrievalTrace(Struct, frozen=True, kw_only=True):
    """What `--trace` shows."""

    terms: tuple[str, ...]
    corrections: dict[str, tuple[str, ...]]
    lexical: tuple[TraceEntry, ...]
    vector: tuple[TraceEntry, ...]
    fused: tuple[TraceEntry, ...]


class QueryStats(Struct, frozen=True, kw_only=True):
    """The query as the lexical index sees it: what the gate of `ask` is computed from."""

    idf: dict[str, float]
    """Each term with its weight; 0 for a term that no chunk has."""
    sum_idf: float
    """Of all terms; one that no chunk has counts as the rarest possible."""
    corrections: dict[str, tuple[str, ...]] = {}
    """Terms that no chunk has, with the near ones that were searched instead."""


class SearchResult(Struct, frozen=True, kw_only=True):
    hits: tuple[Hit, ...]
    mode: SearchMode
    """How it was searched: `lexical` for a hybrid search without vectors."""
    revision: int
    timing: Timing
    query: QueryStats
    next_cursor: str | None = None
    truncated: bool = False
    """`max_tokens` ended the page early."""
    degraded: DegradedReason | None = None
    hint: str = ""
    trace: RetrievalTrace | None = None
