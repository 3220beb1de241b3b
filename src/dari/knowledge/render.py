"""Records of the store as wire objects: citations, hits, summaries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from dari.knowledge.document import Location
from dari.knowledge.ids import citation_uri
from dari.knowledge.store.records import ChunkRecord, DocumentRecord, to_timestamp
from dari.knowledge.wire import objects as wire

if TYPE_CHECKING:
    from dari.knowledge.search.request import Hit, SearchResult


def stale_before(days: int) -> str:
    """A document that was indexed before this moment is stale."""
    return to_timestamp(datetime.now(UTC) - timedelta(days=days))


class Renderer:
    """Makes wire objects of one answer; `stale` is decided by one moment for all of them."""

    def __init__(self, stale_after_days: int, index_version: str = "", embedding_model: str = "") -> None:
        self._stale_before = stale_before(stale_after_days)
        self._index_version = index_version
        self._embedding_model = embedding_model

    def is_stale(self, document: DocumentRecord) -> bool:
        return document.indexed_at < self._stale_before

    def citation(self, document: DocumentRecord, location: Location) -> wire.CitationV1:
        kind, section = location.kind, location.section or UNSET
        places: dict[str, int | str | UnsetType] = {}
        if kind == "line":
            places = {
                "start": location.line_start,
                "end": max(location.line_end, location.line_start),
                "section": section,
            }
        elif kind == "page":
            places = {"page": location.page, "section": section}
        elif kind == "region":
            places = dict(zip("xywh", location.region, strict=True))
        elif kind == "code":
            places = {
                "line_start": location.line_start,
                "line_end": max(location.line_end, location.line_start),
                "symbol": location.symbol or UNSET,
                "lang": location.code_lang or UNSET,
            }
        return wire.CitationV1(
            kind=kind,
            path=document.path,
            uri=citation_uri(document.path, location),
            indexed_at=document.indexed_at,
            stale=self.is_stale(document),
            **places,  # type: ignore[arg-type]
        )

    def response(self, result: SearchResult) -> wire.SearchResponseV1:
        trace: wire.SearchTrace | UnsetType = UNSET
        if result.trace is not None:
            timing = result.timing
            trace = wire.SearchTrace(
                lexical=tuple(
                    wire.TracedHit(chunk_id=t.chunk_id, score=t.score, rank=t.rank) for t in result.trace.lexical
                ),
                vector=tuple(
                    wire.TracedHit(chunk_id=t.chunk_id, score=t.score, rank=t.rank) for t in result.trace.vector
                ),
                rrf_inputs=tuple(
                    wire.TracedHit(chunk_id=t.chunk_id, score=t.score, rank=t.rank) for t in result.trace.fused
                ),
                terms=result.trace.terms,
                corrections=result.trace.corrections,
                timing=wire.SearchTiming(
                    lexical_ms=timing.lexical_ms,
                    vector_ms=timing.vector_ms,
                    fusion_ms=timing.fusion_ms,
                    total_ms=timing.total_ms,
                ),
            )
        return wire.SearchResponseV1(
            hits=tuple(map(self.hit, result.hits)),
            next_cursor=result.next_cursor,
            truncated=result.truncated,
            mode=result.mode,
            degraded=result.degraded or UNSET,
            hint=result.hint or UNSET,
            trace=trace,
        )

    def hit(self, hit: Hit) -> wire.SearchHitV1:
        document, chunk, found = hit.document, hit.chunk, hit.retrieval
        return wire.SearchHitV1(
            rank=hit.rank,
            score=hit.score,
            score_kind=hit.score_kind,
            chunk_id=chunk.chunk_id,
            doc_id=document.doc_id,
            doc_path=document.path,
            heading_path=chunk.heading_path,
            section_label=chunk.heading_path[-1] if chunk.heading_path else UNSET,
            snippet=hit.snippet.text,
            snippet_full_text=hit.snippet.is_whole,
            highlights=hit.snippet.highlights,
            matched_sentence=hit.snippet.sentence or UNSET,
            citation=self.citation(document, chunk.location),
            retrieval=wire.RetrievalScores(
                method=found.method,
                fusion_score=found.fusion_score,
                lexical_score=found.lexical_score,
                vector_score=found.vector_score,
                lexical_rank=found.lexical_rank,
                vector_rank=found.vector_rank,
            ),
            index_version=self._index_version,
            embedding_model=self._embedding_model if found.vector_score is not None else UNSET,
            chunker_version=document.chunker_version,
            indexed_at=document.indexed_at,
            stale=self.is_stale(document),
            repo=document.repo or UNSET,
            code_lang=document.code_lang or UNSET,
            source_id=document.source_id,
            trust_level=document.trust_level,
        )

    def summary(self, document: DocumentRecord) -> wire.DocSummaryV1:
        return wire.DocSummaryV1(
            doc_id=document.doc_id,
            doc_path=document.path,
            title=document.title,
            media=document.media,
            lang=document.lang,
            chunk_count=document.chunk_count,
            byte_len=document.byte_len,
            indexed_at=document.indexed_at,
            stale=self.is_stale(document),
            tags=document.tags,
            trust_level=document.trust_level,
            source_id=document.source_id,
            asset_id=document.asset_id,
            repo=document.repo or UNSET,
            code_lang=document.code_lang or UNSET,
            modified_at=document.modified_at or UNSET,
            block_count=document.block_count,
            parser_version=document.parser_version,
            chunker_version=document.chunker_version,
        )

    def inspection(self, document: DocumentRecord, chunk: ChunkRecord) -> wire.ChunkInspectionV1:
        return wire.ChunkInspectionV1(
            chunk_id=chunk.chunk_id,
            doc_id=document.doc_id,
            doc_path=document.path,
            ordinal=chunk.ordinal,
            heading_path=chunk.heading_path,
            text=chunk.text,
            token_count=chunk.token_count,
            citation=self.citation(document, chunk.location),
            chunker_version=document.chunker_version,
        )

    def fetched(self, document: DocumentRecord, chunk: ChunkRecord) -> wire.FetchedChunk:
        return wire.FetchedChunk(
            chunk_id=chunk.chunk_id,
            ordinal=chunk.ordinal,
            text=chunk.text,
            heading_path=chunk.heading_path,
            citation=self.citation(document, chunk.location),
        )
