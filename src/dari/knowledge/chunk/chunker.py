"""A document to its chunks: the rules of its kind, then the cut of what is too long, then ids and citations."""

from __future__ import annotations

from collections.abc import Iterator

from dari.knowledge.chunk.code import pack_code
from dari.knowledge.chunk.pieces import Piece, split_oversize
from dari.knowledge.chunk.policy import ChunkPolicy, chunker_version, token_count
from dari.knowledge.chunk.prose import pack_sentences
from dari.knowledge.chunk.regions import pack_regions
from dari.knowledge.chunk.sections import Passage, pack_sections
from dari.knowledge.document import LINE_MEDIA, Chunk, Location, ParsedDocument
from dari.knowledge.ids import chunk_id

_EXACT_LINE_MEDIA = LINE_MEDIA | {"notebook"}
"""The lines of a notebook are those of a cell, which is its page."""


def chunk_document(doc_id: str, document: ParsedDocument, policy: ChunkPolicy | None = None) -> list[Chunk]:
    """Chunks in reading order. The same document, id and policy make the same chunks, on every machine."""
    policy = policy or ChunkPolicy()
    version, policy_id = chunker_version(document), policy.hash
    chunks: list[Chunk] = []
    for passage in _passages(document, policy):
        text = passage.text
        tokens = token_count(text)
        if tokens <= policy.max_tokens:
            if text.strip():
                identity = chunk_id(doc_id, version, passage.blocks, policy_id, passage.suffix)
                location = _location(document, passage, passage.line_start, passage.line_end)
                chunks.append(Chunk(identity, len(chunks), text, passage.heading_path, location, tokens))
            continue
        for number, piece in enumerate(split_oversize(text, policy.max_tokens)):
            start, end = _lines_of(document, passage, piece)
            identity = chunk_id(doc_id, version, passage.blocks, policy_id, f"{passage.suffix}#seg{number}")
            location = _location(document, passage, start, end)
            chunks.append(
                Chunk(identity, len(chunks), piece.text, passage.heading_path, location, token_count(piece.text))
            )
    return chunks


def _passages(document: ParsedDocument, policy: ChunkPolicy) -> Iterator[Passage]:
    if document.media == "code":
        yield from pack_code(document.blocks, policy)
    elif document.media == "image":
        yield from pack_regions(document.blocks, policy)
    elif document.media == "pdf":
        for ordinal, block in enumerate(document.blocks):
            yield from pack_sentences(ordinal, block, policy)
    elif document.media == "text":
        for passage in pack_sections(document.blocks, policy):
            if len(passage.blocks) == 1 and token_count(passage.text) > policy.target_tokens:
                ordinal = passage.blocks[0]
                yield from pack_sentences(ordinal, document.blocks[ordinal], policy)
            else:
                yield passage
    else:
        yield from pack_sections(document.blocks, policy, has_exact_lines=document.media in _EXACT_LINE_MEDIA)


def _lines_of(document: ParsedDocument, passage: Passage, piece: Piece) -> tuple[int, int]:
    """The lines of a part of a passage; of the whole passage where its text is not the lines of the file."""
    if not passage.line_start or document.media not in _EXACT_LINE_MEDIA:
        return passage.line_start, passage.line_end
    return passage.line_start + piece.first_line, passage.line_start + piece.last_line


def _location(document: ParsedDocument, passage: Passage, line_start: int, line_end: int) -> Location:
    section = passage.heading_path[-1] if passage.heading_path else ""
    if document.media == "code":
        return Location(
            "code", line_start, line_end, symbol=passage.symbol, code_lang=document.code_lang, section=section
        )
    if document.media == "image":
        return Location("region", region=passage.region) if any(passage.region) else Location("caption")
    if passage.page:
        return Location("page", line_start, line_end, passage.page, section=section)
    return Location("line", line_start, line_end, section=section)
