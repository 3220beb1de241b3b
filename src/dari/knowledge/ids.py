"""Identity of assets, documents and chunks: the first 32 hex digits of BLAKE3 over canonical JSON.

An id holds the versions of what made it. A new parser makes new documents, a new chunker new chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote, unquote

import msgspec
from blake3 import blake3

from dari.core.jcs import canonical
from dari.knowledge.document import Location

ID_HEX_DIGITS = 32
_ID_BYTES = ID_HEX_DIGITS // 2
_LINES = re.compile(r"L(\d{1,9})(?:-L(\d{1,9}))?", re.ASCII)


def asset_id(data: bytes | Iterable[bytes]) -> str:
    """Of a file's bytes, whole or in pieces."""
    if isinstance(data, bytes):
        return blake3(data).digest(_ID_BYTES).hex()
    hasher = blake3()
    for piece in data:
        hasher.update(piece)
    return hasher.digest(_ID_BYTES).hex()


def doc_id(path: str, asset: str, parser_version: str) -> str:
    return _of("doc", path, asset, parser_version)


def chunk_id(doc: str, chunker_version: str, blocks: Sequence[int], policy: str, suffix: str = "") -> str:
    """`blocks` are the ordinals of the blocks it is made of; `suffix` tells the parts of one block apart."""
    return _of("chunk", doc, chunker_version, list(blocks), policy + suffix)


def policy_hash(*settings: object) -> str:
    return _of("policy", *settings)[:16]


def text_hash(text: str) -> str:
    """What vectors are keyed by: equal text has one vector, wherever it stands."""
    return blake3(text.encode("utf-8", "surrogatepass")).digest(_ID_BYTES).hex()


def citation_uri(path: str, location: Location) -> str:
    """`docs/a.md#L12-L34`. The path stays readable: only what would end it or break the URI is escaped."""
    return f"{_escape(path)}#{location.fragment()}"


def read_citation(uri: str) -> tuple[str, int, int]:
    """The path of a citation's URI, and its first and last line; 0 where its fragment names no lines, or is cut off."""
    path, mark, fragment = uri.rpartition("#")
    if not mark:
        return unquote(uri), 0, 0
    lines = _LINES.fullmatch(fragment)
    if lines is None:
        return unquote(path), 0, 0
    return unquote(path), int(lines[1]), int(lines[2] or lines[1])


def _escape(path: str) -> str:
    if "#" in path or "%" in path or not path.isprintable():
        return "".join(
            quote(one, errors="surrogateescape") if one in "#%" or not one.isprintable() else one for one in path
        )
    return path


def _of(*parts: object) -> str:
    """For text and whole numbers msgspec writes the canonical form too, and faster; it refuses lone surrogates."""
    try:
        text = msgspec.json.encode(parts)
    except UnicodeEncodeError:
        text = canonical(parts)
    return blake3(text).digest(_ID_BYTES).hex()
