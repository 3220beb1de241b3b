"""Documents and chunks for tests of the knowledge base, made without a parser."""

from __future__ import annotations

from collections.abc import Sequence

from blake3 import blake3

from dari.knowledge.document import Block, Chunk, Location
from dari.knowledge.store.records import DocumentRecord, utc_text
from dari.knowledge.store.store import PutResult, Store


def document(path: str, **fields: object) -> DocumentRecord:
    """A Markdown file of the default source."""
    values: dict[str, object] = {
        "doc_id": short_hash(path, str(fields.get("asset_id", ""))),
        "path": path,
        "asset_id": short_hash(path),
        "media": "markdown",
        "title": path.rsplit("/", 1)[-1],
        "parser_version": "md-v1",
        "chunker_version": "md-heading-v2",
        "indexed_at": utc_text(),
        "modified_at": utc_text(0),
    }
    return DocumentRecord(**(values | fields))  # type: ignore[arg-type]


def passages(path: str, texts: Sequence[str], heading: str = "Heading") -> list[Chunk]:
    """A chunk a text, ten lines each."""
    return [
        Chunk(
            chunk_id=short_hash(path, str(number), text),
            ordinal=number,
            text=text,
            heading_path=(heading,),
            location=Location("line", line_start=number * 10 + 1, line_end=number * 10 + 9, section=heading),
            token_count=len(text) // 3,
        )
        for number, text in enumerate(texts)
    ]


def put(store: Store, path: str, *texts: str, heading: str = "Heading", **fields: object) -> PutResult:
    """A document in a transaction of its own."""
    with store.write() as transaction:
        return transaction.put_document(
            document(path, **fields), passages(path, texts, heading), [Block("paragraph", text) for text in texts]
        )


def short_hash(*parts: str) -> str:
    return blake3("\0".join(parts).encode()).hexdigest()[:32]
