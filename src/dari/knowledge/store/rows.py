"""Records as rows of a database and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec

from dari.errors import Failed
from dari.knowledge.document import Block, CitationKind, Location
from dari.knowledge.ids import text_hash
from dari.knowledge.store.records import ChunkRecord, DocumentRecord
from dari.struct_types import ready

MAX_BLOCKS = 200_000
MAX_BLOCKS_BYTES = 64 * 1024 * 1024
"""Above what a parser may give. A row of a shared database may be of somebody else's making."""
_DOCUMENT_FIELDS = DocumentRecord.__struct_fields__
DOCUMENT_COLUMNS = ", ".join(_DOCUMENT_FIELDS)
CHUNK_COLUMNS = "chunk_no, chunk_id, doc_no, ordinal, text, heading_path, location, token_count"
_TAGS = _DOCUMENT_FIELDS.index("tags")

_LocationRow = tuple[CitationKind, int, int, int, str, str, str, tuple[int, int, int, int]]
_decode_words = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_location = msgspec.json.Decoder(ready(_LocationRow)).decode
_decode_blocks = msgspec.msgpack.Decoder(
    ready(Annotated[tuple[Block, ...], msgspec.Meta(max_length=MAX_BLOCKS)])
).decode


class SqlCursor(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class SqlConnection(Protocol):
    """A connection to SQLite, or one to PostgreSQL that takes `?` for a value as SQLite does."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> SqlCursor: ...

    def executemany(self, sql: str, values: Sequence[Sequence[Any]], /) -> object: ...


def document_row(record: DocumentRecord) -> tuple[Any, ...]:
    """The values of DOCUMENT_COLUMNS; `doc_no` 0 lets the store choose one."""
    values = list(msgspec.structs.astuple(record))
    values[0] = record.doc_no or None
    values[_TAGS] = encode_words(record.tags)
    return tuple(values)


def document_of(row: Sequence[Any]) -> DocumentRecord:
    values = dict(zip(_DOCUMENT_FIELDS, row, strict=True))
    values["tags"] = _decode_words(row[_TAGS])
    return DocumentRecord(**values)


def chunk_of(row: Sequence[Any]) -> ChunkRecord:
    return ChunkRecord(
        chunk_no=row[0],
        chunk_id=row[1],
        doc_no=row[2],
        ordinal=row[3],
        text=row[4],
        heading_path=decode_words(row[5]),
        location=Location(*_decode_location(row[6])),
        token_count=row[7],
    )


def encode_words(words: tuple[str, ...]) -> str:
    return msgspec.json.encode(words).decode() if words else "[]"


def decode_words(text: str) -> tuple[str, ...]:
    return _decode_words(text) if text != "[]" else ()


def encode_location(location: Location) -> str:
    """An array: the names of its fields in every row would be more than its values."""
    return msgspec.json.encode(msgspec.structs.astuple(location)).decode()


def encode_blocks(blocks: Sequence[Block]) -> bytes:
    import zstandard

    return zstandard.compress(msgspec.msgpack.encode(tuple(blocks)), 3)


def decode_blocks(data: bytes) -> tuple[Block, ...]:
    """Failed where the row is damaged, or says that it is larger than any that kebab writes."""
    import zstandard

    try:
        size = zstandard.frame_content_size(data)
        if 0 <= size <= MAX_BLOCKS_BYTES:
            blocks: tuple[Block, ...] = _decode_blocks(zstandard.decompress(data))
            return blocks
        reason = f"it says {size} bytes, {MAX_BLOCKS_BYTES} are the most"
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        reason = str(error)
    raise Failed(f"the stored text of a document cannot be read: {reason}", "kebab ingest --force-reingest")


def hash_text(text: str) -> bytes:
    """What vectors are keyed by, in half the bytes of its hex digits."""
    return bytes.fromhex(text_hash(text))
