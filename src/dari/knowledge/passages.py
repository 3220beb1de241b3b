"""Documents and their text, word for word: lists, chunks with their neighbours, whole documents, spans of lines."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET
from msgspec.structs import replace

from dari.knowledge.config import Settings
from dari.knowledge.document import LINE_MEDIA, Block
from dari.knowledge.errors import ChunkNotFound, DocNotFound, InvalidArgument, SpanNotSupported
from dari.knowledge.ids import read_citation
from dari.knowledge.paths import EXTERNAL
from dari.knowledge.render import Renderer
from dari.knowledge.store.records import ChunkRecord, DocumentFilter, DocumentRecord
from dari.knowledge.store.store import Store
from dari.knowledge.wire.objects import ChunkInspectionV1, DocInspectionV1, DocListV1, FetchKind, FetchResultV1

BYTES_PER_TOKEN = 3
"""How the chunker counts, too."""


class Passages:
    def __init__(
        self, store: Store, settings: Settings, renderer: Renderer, read_asset: Callable[[str, int], bytes | None]
    ) -> None:
        self._store = store
        self._settings = settings
        self._renderer = renderer
        self._read_asset = read_asset

    def list_docs(self, where: DocumentFilter, cursor: str, limit: int) -> DocListV1:
        """By path; the cursor is the last path of the page before."""
        found = self._store.list_documents(where, cursor, limit + 1)
        shown = found[:limit]
        next_cursor = shown[-1].path if len(found) > limit else None
        return DocListV1(docs=tuple(map(self._renderer.summary, shown)), next_cursor=next_cursor)

    def inspect_doc(self, id_or_path: str) -> DocInspectionV1:
        document = self._document(id_or_path)
        chunks = self._store.chunks_of(document.doc_no)
        return DocInspectionV1(
            doc=self._renderer.summary(document),
            chunks=tuple(self._renderer.inspection(document, chunk) for chunk in chunks),
        )

    def inspect_chunk(self, chunk_id: str) -> ChunkInspectionV1:
        chunk, document = self._chunk(chunk_id)
        return self._renderer.inspection(document, chunk)

    def fetch_chunk(self, chunk_id: str, context: int, max_tokens: int | None) -> FetchResultV1:
        chunk, document = self._chunk(chunk_id)
        around = self._store.chunks_of(document.doc_no, max(0, chunk.ordinal - context), chunk.ordinal + context)
        before = [one for one in around if one.ordinal < chunk.ordinal]
        after = [one for one in around if one.ordinal > chunk.ordinal]
        kept = {chunk.chunk_no}
        if max_tokens is not None:
            left = max_tokens - chunk.token_count
            for near in sorted((*before, *after), key=lambda one: abs(one.ordinal - chunk.ordinal)):
                left -= near.token_count
                if left < 0:
                    break
                kept.add(near.chunk_no)
        else:
            kept |= {one.chunk_no for one in around}
        fetched = self._renderer.fetched
        is_cut = len(kept) < len(around) or (max_tokens is not None and chunk.token_count > max_tokens)
        return replace(
            self._result("chunk", document, is_cut),
            chunk=fetched(document, chunk),
            context_before=tuple(fetched(document, one) for one in before if one.chunk_no in kept),
            context_after=tuple(fetched(document, one) for one in after if one.chunk_no in kept),
        )

    def fetch_doc(self, id_or_path: str, max_tokens: int | None) -> FetchResultV1:
        document = self._document(id_or_path)
        text, is_cut = _cut(self._text_of(document), max_tokens)
        return replace(self._result("doc", document, is_cut), text=text)

    def fetch_span(self, id_or_path: str, start: int, end: int | None, max_tokens: int | None) -> FetchResultV1:
        """Lines, both ends included. `effective_end` is the last one that is there and fits."""
        document = self._document(id_or_path)
        if document.media not in LINE_MEDIA:
            raise SpanNotSupported(
                f"{document.path} is {document.media}, which has no lines",
                f"kebab fetch doc {document.path}",
                media=document.media,
            )
        last = start if end is None else end
        if start < 1 or last < start:
            raise InvalidArgument(
                f"lines must be from 1 on and in order, got {start} to {last}", "give the first line, then the last"
            )
        lines = _lines_of(self._text_of(document))
        if start > len(lines):
            raise InvalidArgument(f"{document.path} has {len(lines)} lines, got {start}", "give an earlier line")
        text, is_cut = _cut("\n".join(lines[start - 1 : last]), max_tokens)
        effective = min(last, len(lines)) if not is_cut else start + text.count("\n")
        return replace(
            self._result("span", document, is_cut),
            text=text,
            line_start=start,
            line_end=last,
            effective_end=effective if effective != last else UNSET,
        )

    def _document(self, id_or_path: str) -> DocumentRecord:
        """By its id, its path, or a citation of it as a result shows it."""
        found = self._store.document_by_id(id_or_path) or self._store.document_by_path(id_or_path)
        if found is None and ("#" in id_or_path or "%" in id_or_path):
            found = self._store.document_by_path(read_citation(id_or_path)[0])
        if found is None:
            raise DocNotFound(
                f"no document has the id or path {id_or_path[:200]!r}", "kebab list docs", doc_id=id_or_path
            )
        return found

    def _chunk(self, chunk_id: str) -> tuple[ChunkRecord, DocumentRecord]:
        chunk = self._store.chunk_by_id(chunk_id)
        document = None if chunk is None else self._store.documents([chunk.doc_no]).get(chunk.doc_no)
        if chunk is None or document is None:
            raise ChunkNotFound(
                f"no chunk has the id {chunk_id[:80]!r}",
                "search again: ids change when their document does",
                chunk_id=chunk_id,
            )
        return chunk, document

    def _result(self, kind: FetchKind, document: DocumentRecord, is_cut: bool) -> FetchResultV1:
        return FetchResultV1(
            kind=kind,
            doc_id=document.doc_id,
            doc_path=document.path,
            indexed_at=document.indexed_at,
            stale=self._renderer.is_stale(document),
            truncated=is_cut,
        )

    def _text_of(self, document: DocumentRecord) -> str:
        """The file as it was indexed; where it is gone or has changed, what its parser made of it."""
        if document.media in LINE_MEDIA:
            data = self._bytes_of(document)
            if data is not None:
                from dari.knowledge.parse.encoding import decode

                return decode(data)[0]
        max_lines = min(document.byte_len + 1, self._settings.config.ingest.max_text_bytes)
        return _join(self._store.blocks_of(document.doc_no), max_lines)

    def _bytes_of(self, document: DocumentRecord) -> bytes | None:
        from dari.knowledge.ids import asset_id
        from dari.knowledge.ingest.sources import all_sources
        from dari.paths import read_regular

        max_bytes = max(1, min(document.byte_len, self._settings.config.ingest.max_file_bytes))
        if document.path.startswith(f"{EXTERNAL}/"):
            data = self._read_asset(document.asset_id, max_bytes)
        else:
            known = all_sources(self._settings, self._store)
            source = next((one for one in known if one.id == document.source_id), None)
            if source is None:
                return None
            path = source.root / document.path.removeprefix(source.document_path("")).lstrip("/")
            try:
                data = read_regular(path, max_bytes)
            except OSError:
                return None
        return data if data is not None and asset_id(data) == document.asset_id else None


def _join(blocks: tuple[Block, ...], max_lines: int) -> str:
    """Blocks at the lines where they stood, or one after the other where they have none, or one that cannot be."""
    lines: list[str] = []
    for block in blocks:
        if len(lines) + 1 < block.line_start <= max_lines:
            lines += [""] * (block.line_start - len(lines) - 1)
        elif lines and not block.line_start:
            lines.append("")
        lines += _lines_of(block.text)
    return "\n".join(lines)


def _lines_of(text: str) -> list[str]:
    """As parsers count them for citations. `str.splitlines` also ends a line at a form feed, of which old sources have
    many, and at U+2028."""
    return text.removesuffix("\n").split("\n") if text else []


def _cut(text: str, max_tokens: int | None) -> tuple[str, bool]:
    """At most so many tokens, to the end of a line where one is near."""
    if max_tokens is None or len(text.encode()) <= max_tokens * BYTES_PER_TOKEN:
        return text, False
    kept = text.encode()[: max_tokens * BYTES_PER_TOKEN].decode("utf-8", "ignore")
    line_end = kept.rfind("\n")
    return (kept[:line_end] if line_end > len(kept) // 2 else kept), True
