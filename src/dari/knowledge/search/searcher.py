"""One search over the store and its indexes: candidates of both halves, fused, filtered, cut into pages."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dari.errors import DariError
from dari.knowledge.config import SearchSettings
from dari.knowledge.document import ScoreKind, SearchMode
from dari.knowledge.errors import InvalidArgument, ModelNotInstalled
from dari.knowledge.search.coverage import read_question
from dari.knowledge.search.cursor import decode_cursor, encode_cursor
from dari.knowledge.search.fusion import convex, reciprocal_ranks, trusted_weight
from dari.knowledge.search.pages import Page, read_page
from dari.knowledge.search.query import WeightedQuery, parse_query, weigh
from dari.knowledge.search.request import (
    MAX_K,
    DegradedReason,
    Retrieval,
    RetrievalTrace,
    SearchRequest,
    SearchResult,
    Timing,
    TraceEntry,
)
from dari.knowledge.search.snippets import Highlighter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dari.knowledge.index.index import Lexical, VectorRows
    from dari.knowledge.index.vectors import Vectors
    from dari.knowledge.models.model import EmbeddingModel
    from dari.knowledge.store.records import DocumentFilter
    from dari.knowledge.store.store import Store

    Ranked = Sequence[tuple[int, float]]

FAN_OUT = 100
"""Candidates of each half in a hybrid search; its pages end with them."""
MAX_DEPTH = 10_000
"""Where the pages of a lexical or vector search end."""
_DEPTHS = (30, 100, 1000, MAX_DEPTH)
_MAX_CACHED_FILTERS = 16
_COVERAGE_HITS = 3
_DEGRADED_HINTS: dict[DegradedReason, str] = {
    "no_model": "no embedding model is installed, so only words were compared; kebab models install adds meaning",
    "no_vectors": "no passage has a vector of the model yet, so only words were compared; kebab ingest makes them",
    "model_failed": "the embedding model failed, so only words were compared",
}
_NO_VECTORS_HINT = "no passage has a vector of the model yet; kebab ingest makes them, and mode lexical compares words"


class _Found(Struct, frozen=True, kw_only=True):
    """Candidates in their final order, with what each half said of them."""

    order: Ranked
    kind: ScoreKind
    mode: SearchMode
    lexical: Ranked = ()
    vector: Ranked = ()
    cosines: Mapping[int, float] = {}
    is_cut: bool = False
    """More would be found with a greater depth."""
    times_s: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Searcher:
    """Searches. Safe for several threads; it never writes. It follows the indexes when their writer has moved on."""

    def __init__(
        self,
        store: Store,
        lexical: Lexical,
        vectors: VectorRows | None = None,
        model: EmbeddingModel | None = None,
        settings: SearchSettings | None = None,
        model_failure: DariError | None = None,
    ) -> None:
        """`model_failure` is why `model` is None though one is chosen."""
        self._store = store
        self._lexical = lexical
        self._vectors = vectors
        self._model = model
        self._settings = settings or SearchSettings()
        self._model_failure = model_failure
        self._filters: OrderedDict[tuple[int, DocumentFilter], frozenset[int]] = OrderedDict()
        self._lock = Lock()

    @property
    def embedded_passages(self) -> int:
        """Passages that a search by meaning can find."""
        return self._vectors.chunk_count if self._vectors is not None else 0

    def search(self, request: SearchRequest) -> SearchResult:
        """One page of hits. A hybrid search without a model is lexical, and says so in `degraded`."""
        began = time.perf_counter()
        _check(request)
        self._follow_writers(request.mode)
        revision = self._store.revision()
        offset = decode_cursor(request, revision)
        query, phrase_hint = self._loosen(weigh(parse_query(request.query), self._lexical))
        allowed = self._allowed(request.where, revision)
        found, degraded, hint = self._find(request, query, allowed, offset + request.k)
        page = read_page(
            self._store, found.order, offset, request, query, self._lexical, _retrieval_of(found), found.kind
        )
        has_more = page.next_offset < len(found.order) or found.is_cut
        return SearchResult(
            hits=page.hits,
            mode=found.mode,
            revision=revision,
            timing=_timing(found.times_s, began),
            query=query.stats,
            next_cursor=encode_cursor(request, revision, page.next_offset) if has_more and page.hits else None,
            truncated=page.truncated,
            degraded=degraded,
            hint=_filter_hint(request.where, allowed) or hint or phrase_hint or self._phrase_hint(query, page),
            trace=self._trace(query, found) if request.trace else None,
        )

    # --- the two halves

    def _find(
        self, request: SearchRequest, query: WeightedQuery, allowed: frozenset[int] | None, wanted: int
    ) -> tuple[_Found, DegradedReason | None, str]:
        if request.mode == "lexical":
            return self._find_lexical(query, allowed, wanted), None, ""
        try:
            if self._model_failure is not None:
                raise self._model_failure
            degraded = self._why_degraded()
            vector = None if degraded or self._model is None else self._model.embed_query(request.query)
            hint = _DEGRADED_HINTS[degraded] if degraded else ""
        except (DariError, OSError) as error:
            if request.mode == "vector":
                raise
            vector, degraded, hint = None, "model_failed", f"{_DEGRADED_HINTS['model_failed']}: {error}"
        if vector is not None:
            dense_allowed = self._with_phrases(query, allowed)
            if request.mode == "vector":
                return self._find_vector(vector, dense_allowed, wanted), None, ""
            return self._find_hybrid(request.query, query, vector, allowed, dense_allowed), None, ""
        if request.mode == "vector" and degraded == "no_model":
            raise ModelNotInstalled(
                "a vector search needs an embedding model, and none is installed",
                "run kebab models install, or use mode lexical",
            )
        if request.mode == "vector":
            return _Found(order=(), kind="cosine", mode="vector"), degraded, _NO_VECTORS_HINT
        return self._find_lexical(query, allowed, wanted), degraded, hint

    def _find_lexical(self, query: WeightedQuery, allowed: frozenset[int] | None, wanted: int) -> _Found:
        began = time.perf_counter()
        ranked, is_cut = _read_deep(
            lambda depth: self._lexical.search(query.weights, depth, allowed, query.phrases), wanted
        )
        times = (time.perf_counter() - began, 0.0, 0.0)
        return _Found(order=ranked, kind="bm25", mode="lexical", lexical=ranked, is_cut=is_cut, times_s=times)

    def _find_vector(self, vector: Vectors, allowed: frozenset[int] | None, wanted: int) -> _Found:
        assert self._vectors is not None
        began, vectors = time.perf_counter(), self._vectors
        ranked, is_cut = _read_deep(lambda depth: vectors.search(vector, depth, allowed), wanted)
        times = (0.0, time.perf_counter() - began, 0.0)
        cosines = dict(ranked)
        return _Found(
            order=ranked, kind="cosine", mode="vector", vector=ranked, cosines=cosines, is_cut=is_cut, times_s=times
        )

    def _find_hybrid(
        self,
        text: str,
        query: WeightedQuery,
        vector: Vectors,
        allowed: frozenset[int] | None,
        dense_allowed: frozenset[int] | None,
    ) -> _Found:
        assert self._vectors is not None and self._model is not None
        began = time.perf_counter()
        lexical = self._lexical.search(query.weights, FAN_OUT, allowed, query.phrases)
        after_lexical = time.perf_counter()
        dense = self._vectors.search(vector, FAN_OUT, dense_allowed)
        cosines = dict(dense)
        cosines |= self._vectors.scores(vector, [number for number, _ in lexical if number not in cosines])
        after_vector = time.perf_counter()
        if self._settings.fusion == "rrf":
            scores = reciprocal_ranks((lexical, dense), self._settings.rrf_k)
        else:
            weight = trusted_weight(self._model.lexical_weight, self._coverage(text, query, lexical))
            scores = convex(lexical, dense, cosines, weight)
        order = sorted(scores.items(), key=lambda one: -one[1])
        now = time.perf_counter()
        times = (after_lexical - began, after_vector - after_lexical, now - after_vector)
        kind: ScoreKind = "rrf" if self._settings.fusion == "rrf" else "convex"
        return _Found(
            order=order, kind=kind, mode="hybrid", lexical=lexical, vector=dense, cosines=cosines, times_s=times
        )

    def _coverage(self, text: str, query: WeightedQuery, lexical: Ranked) -> float:
        """The share of the query's words that one of the best lexical hits holds, in its text or its title."""
        chunks = self._store.chunks(number for number, _ in lexical[:_COVERAGE_HITS])
        documents = self._store.documents({chunk.doc_no for chunk in chunks.values()})
        words = read_question(text, query.stats)
        highlighter = Highlighter(words.terms)
        shares = (
            words.share_in(
                highlighter.terms_in(" ".join((chunk.text, *chunk.heading_path, documents[chunk.doc_no].title)))
            )
            for chunk in chunks.values()
            if chunk.doc_no in documents
        )
        return max(shares, default=0.0)

    def _why_degraded(self) -> DegradedReason | None:
        if self._model is None:
            return "no_model"
        return "no_vectors" if self._vectors is None or not self._vectors.chunk_count else None

    # --- filters

    def _allowed(self, where: DocumentFilter, revision: int) -> frozenset[int] | None:
        """The chunks of a filter; remembered, since pages and further queries come with the same one."""
        if where.is_empty:
            return None
        key = (revision, where)
        with self._lock:
            if key in self._filters:
                self._filters.move_to_end(key)
                return self._filters[key]
        numbers = frozenset(self._store.chunk_nos_of(where))
        with self._lock:
            self._filters[key] = numbers
            while len(self._filters) > _MAX_CACHED_FILTERS:
                self._filters.popitem(last=False)
        return numbers

    def _with_phrases(self, query: WeightedQuery, allowed: frozenset[int] | None) -> frozenset[int] | None:
        """A quoted phrase binds the dense half too."""
        if not query.phrases:
            return allowed
        numbers = frozenset(self._lexical.chunks_with_phrases(query.phrases, MAX_DEPTH))
        return numbers if allowed is None else numbers & allowed

    def _loosen(self, query: WeightedQuery) -> tuple[WeightedQuery, str]:
        """A sentence that quotes what no passage says word for word is searched by its words, and a hint says so."""
        if not query.phrases or not query.has_words_beside or self._lexical.chunks_with_phrases(query.phrases, 1):
            return query, ""
        return replace(query, phrases=()), "no passage has the quoted phrase, so its words were searched one by one"

    def _phrase_hint(self, query: WeightedQuery, page: Page) -> str:
        if query.phrases and not page.hits:
            return "no passage has the quoted phrase; without the quotes its words are searched one by one"
        return ""

    # --- what is shown

    def _trace(self, query: WeightedQuery, found: _Found) -> RetrievalTrace:
        numbers = {number for ranked in (found.lexical, found.vector, found.order) for number, _ in ranked[:FAN_OUT]}
        chunks = self._store.chunks(numbers)

        def entries(ranked: Ranked) -> tuple[TraceEntry, ...]:
            return tuple(
                TraceEntry(chunks[number].chunk_id, rank, score)
                for rank, (number, score) in enumerate(ranked[:FAN_OUT], 1)
                if number in chunks
            )

        return RetrievalTrace(
            terms=tuple(query.stats.idf),
            corrections=query.stats.corrections,
            lexical=entries(found.lexical),
            vector=entries(found.vector),
            fused=entries(found.order),
        )

    def _follow_writers(self, mode: SearchMode) -> None:
        if self._lexical.has_changed:
            self._lexical.reload()
        if mode != "lexical" and self._vectors is not None and self._vectors.has_changed:
            state = self._store.vector_state(self._vectors.model_key)
            self._vectors.refresh(state.committed_rows if state else 0)


def _filter_hint(where: DocumentFilter, allowed: frozenset[int] | None) -> str:
    if allowed is None or allowed:
        return ""
    given = ", ".join(name.removesuffix("s") for name in where.__struct_fields__ if getattr(where, name))
    return f"no document fits the filter ({given}); kebab list docs shows what there is"


def _check(request: SearchRequest) -> None:
    if not request.query.strip():
        raise InvalidArgument("query must not be empty", "name what to look for, in words of the documents")
    if not 1 <= request.k <= MAX_K:
        raise InvalidArgument(f"k must be between 1 and {MAX_K}, got {request.k}", "use the cursor for more")
    if request.max_tokens is not None and request.max_tokens < 1:
        raise InvalidArgument(f"max_tokens must be at least 1, got {request.max_tokens}")


def _read_deep(read: Callable[[int], Ranked], wanted: int) -> tuple[Ranked, bool]:
    """A list in which the first `wanted` keep their order at any depth, and whether it goes on: where the last of them
    ties with the last that was read, more is read, so that pages cannot overlap."""
    for depth in _DEPTHS:
        if wanted < depth or depth == MAX_DEPTH:
            ranked = read(depth)
            is_full = len(ranked) == depth
            if depth == MAX_DEPTH or not is_full or ranked[wanted - 1][1] > ranked[-1][1]:
                return ranked, is_full and depth < MAX_DEPTH
    return (), False


def _retrieval_of(found: _Found) -> Callable[[int, float], Retrieval]:
    lexical = {number: (rank, score) for rank, (number, score) in enumerate(found.lexical, 1)}
    vector = {number: rank for rank, (number, _) in enumerate(found.vector, 1)}

    def retrieval(number: int, score: float) -> Retrieval:
        rank, bm25 = lexical.get(number, (None, None))
        vector_rank = vector.get(number)
        method: SearchMode = "hybrid" if rank and vector_rank else "lexical" if rank else "vector"
        return Retrieval(
            method=method,
            fusion_score=score,
            lexical_score=bm25,
            vector_score=found.cosines.get(number),
            lexical_rank=rank,
            vector_rank=vector_rank,
        )

    return retrieval


def _timing(times_s: tuple[float, float, float], began: float) -> Timing:
    lexical, vector, fusion = (round(one * 1000, 3) for one in times_s)
    total = round((time.perf_counter() - began) * 1000, 3)
    return Timing(lexical_ms=lexical, vector_ms=vector, fusion_ms=fusion, total_ms=total)
