"""A body edited as its author sees it: its content coding undone, and put back as the header still says."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import cast

from dari.proxy.flow import Headers
from dari.proxy.traffic import headers
from dari.proxy.traffic.coding import MAX_CODINGS, decode

_LIMIT_BYTES = 32 * 1024 * 1024
_DIGESTS = (b"content-md5", b"digest", b"content-digest", b"repr-digest")
"""Describe the bytes of a body that is no longer there."""


def recoded(body: bytes, head: Headers, edit: Callable[[bytes], bytes]) -> bytes:
    """A body that cannot be decoded, or not encoded again, stays as it is: half an edit would break the client."""
    codings = headers.codings(head)
    if not codings:
        return edit(body)
    if any(name not in _CODE for name in codings):
        return body
    decoded = decode((body,), codings, _LIMIT_BYTES)
    if decoded.is_cut or decoded.problem is not None:
        return body
    edited = edit(decoded.data)
    for name in codings:
        edited = _CODE[name](edited)
    return edited


def encoded(text: str, head: Headers) -> tuple[bytes, Headers]:
    """A body that a person wrote, as bytes that fit the head; a coding or charset that we cannot write is dropped."""
    head = [field for field in head if field[0].lower() not in _DIGESTS]
    name = headers.charset(head)
    try:
        data = text.encode(name or "utf-8")
    except (LookupError, UnicodeError):
        data = text.encode()
        kind = f"{headers.mime(head)}; charset=utf-8".encode("latin-1", "replace")
        head = [(key, kind if key.lower() == b"content-type" else value) for key, value in head]
    codings = headers.codings(head)
    if len(codings) > MAX_CODINGS or any(one not in _CODE for one in codings):
        return data, [field for field in head if field[0].lower() != b"content-encoding"]
    for one in codings:
        data = _CODE[one](data)
    return data, head


def _brotli(data: bytes) -> bytes:
    import brotli  # type: ignore[import-untyped]

    return cast(bytes, brotli.compress(data, quality=4))


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


_CODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 6),
    "x-gzip": lambda data: gzip.compress(data, 6),
    "deflate": zlib.compress,
    "br": _brotli,
    "zstd": _zstd,
}
