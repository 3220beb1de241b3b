"""A body edited as its author sees it: its content coding undone, and put back as the header still says."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import cast

from dari.proxy.flow import Headers
from dari.proxy.traffic import headers
from dari.proxy.traffic.coding import decode

_LIMIT_BYTES = 32 * 1024 * 1024


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
