"""Where a page of a search ended, as a word that only the same search takes."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec
from msgspec import Struct

from dari.errors import InvalidInput
from dari.struct_types import ready


class SearchPosition(Struct, frozen=True, array_like=True):
    """The last match that was returned. Matches after it, in the order of paths and lines, are the next page."""

    key: bytes
    """`path_key` of its file."""
    line: int = 0
    col: int = 0
    is_common: bool = False
    """There are many matches: to search in order and stop soon is cheaper than to search all."""


class _Cursor(Struct, frozen=True, array_like=True):
    fingerprint: bytes
    position: SearchPosition


def write_cursor(fingerprint: bytes, position: SearchPosition) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(_Cursor(fingerprint, position))).decode().rstrip("=")


def read_cursor(cursor: str | None, fingerprint: bytes) -> SearchPosition | None:
    """InvalidInput when it belongs to another search, or is not a cursor at all."""
    if not cursor:
        return None
    try:
        read = msgspec.msgpack.decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=ready(_Cursor))
    except (ValueError, msgspec.DecodeError):
        raise InvalidInput(
            f"cursor must be one that crewx_tools_search returned, got {cursor[:80]!r}",
            "copy it whole, or leave it out for the first page",
        ) from None
    if read.fingerprint != fingerprint:
        raise InvalidInput(
            "the cursor belongs to another search",
            "repeat that search with the same pattern, mode, case, output, paths, globs, lang, root, includeHidden and "
            "includeIgnored, or leave the cursor out",
        )
    return read.position
