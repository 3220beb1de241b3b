"""A document between its parser and the store: blocks in reading order, and the chunks that are indexed and cited.

The words that settings, search and the wire share are here too.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Media = Literal["markdown", "text", "pdf", "html", "office", "code", "notebook", "image"]
TrustLevel = Literal["primary", "secondary", "generated"]
BlockKind = Literal["heading", "paragraph", "list", "code", "table", "image", "page", "unit"]
CitationKind = Literal["line", "page", "region", "caption", "time", "code"]
SearchMode = Literal["lexical", "vector", "hybrid"]
ScoreKind = Literal["bm25", "cosine", "convex", "rrf"]

LINE_MEDIA: frozenset[Media] = frozenset(("markdown", "text", "code"))
"""Media whose text is the file's, line by line: the n-th line of a passage is the n-th line of the file from where it
begins. The others have only what their parser made of them: blocks put together, wrapped lines joined."""


class Block(Struct, frozen=True, array_like=True):
    """One element of a document. Lines count from 1; 0 says that the format has no lines, or no pages."""

    kind: BlockKind
    text: str
    line_start: int = 0
    line_end: int = 0
    page: int = 0
    heading_path: tuple[str, ...] = ()
    symbol: str = ""  # of a unit of code: its qualified name
    region: tuple[int, int, int, int] = (0, 0, 0, 0)  # of text in a picture: x, y, width, height in pixels


class ParsedDocument(Struct, frozen=True, array_like=True):
    """What a parser makes of one file."""

    media: Media
    parser_version: str
    blocks: tuple[Block, ...]
    title: str = ""
    lang: str = "und"  # ISO 639-1, or "und"
    code_lang: str = ""
    tags: tuple[str, ...] = ()
    trust_level: TrustLevel = "primary"
    warnings: tuple[str, ...] = ()
    ocr_pages: int = 0
    ocr_ms: int = 0


class Location(Struct, frozen=True):
    """Where a chunk stands in its file: the variant fields of `citation.v1`. Absent ones are 0 or empty."""

    kind: CitationKind
    line_start: int = 0
    line_end: int = 0
    page: int = 0
    symbol: str = ""
    code_lang: str = ""
    section: str = ""
    region: tuple[int, int, int, int] = (0, 0, 0, 0)

    def fragment(self) -> str:
        """The part of the citation's URI after `#`: W3C media fragments, such as `L12-L34`, `p=3`, `xywh=1,2,3,4`."""
        if self.kind == "page":
            return f"p={self.page}"
        if self.kind == "region":
            return "xywh=" + ",".join(map(str, self.region))
        if self.kind == "caption":
            return "caption"
        if self.line_end <= self.line_start:
            return f"L{self.line_start}"
        return f"L{self.line_start}-L{self.line_end}"


class Chunk(Struct, frozen=True):
    """A passage: what is indexed, found, cited and fetched."""

    chunk_id: str
    ordinal: int  # its place in the document, from 0
    text: str
    heading_path: tuple[str, ...]
    location: Location
    token_count: int
