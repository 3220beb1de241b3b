"""Cursors: where a page ended, which search it was, and of which revision. Opaque to callers."""

from __future__ import annotations

import base64
import binascii
import hashlib

import msgspec
from msgspec import Struct

from dari.knowledge.errors import InvalidArgument, StaleCursor
from dari.knowledge.search.request import SearchRequest
from dari.struct_types import ready


class _Cursor(Struct, frozen=True, array_like=True):
    revision: int
    offset: int
    search: str


def encode_cursor(request: SearchRequest, revision: int, offset: int) -> str:
    """The cursor of the page that begins at `offset`."""
    packed = msgspec.msgpack.encode(_Cursor(revision, offset, _fingerprint(request)))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_cursor(request: SearchRequest, revision: int) -> int:
    """The offset that the request's cursor names; 0 without one."""
    if not request.cursor:
        return 0
    try:
        packed = base64.b64decode(request.cursor + "=" * (-len(request.cursor) % 4), b"-_", validate=True)
        cursor = msgspec.msgpack.decode(packed, type=ready(_Cursor))
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise InvalidArgument(
            f"cursor must be the next_cursor of a search, got {request.cursor[:40]!r}",
            "leave it out for the first page",
        ) from None
    if cursor.search != _fingerprint(request) or cursor.offset < 0:
        raise InvalidArgument("cursor belongs to another search", "repeat the query, mode and filters it came with")
    if cursor.revision != revision:
        raise StaleCursor(
            f"the corpus is at revision {revision}, the cursor is of {cursor.revision}", "search again without a cursor"
        )
    return cursor.offset


def _fingerprint(request: SearchRequest) -> str:
    """Of what decides the order of hits: page size and snippets may change between pages."""
    kind = (request.query, request.mode, msgspec.structs.astuple(request.where))
    return hashlib.blake2b(msgspec.msgpack.encode(kind), digest_size=8).hexdigest()
