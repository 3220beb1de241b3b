"""How a body ends: after so many bytes, or with its connection. Same shape as `ChunkScanner`, sans-I/O."""

from __future__ import annotations

from collections.abc import Sequence

from dari.proxy.engine.chunks import ChunkScanner
from dari.proxy.engine.heads import CHUNKED, UNTIL_CLOSE
from dari.proxy.flow import Body, Headers


class FixedBody:
    """As many bytes as Content-Length says."""

    __slots__ = ("left", "payload", "raw", "rest")

    def __init__(self, length: int) -> None:
        self.left = length
        self.raw = b""
        self.payload: Sequence[bytes] = ()
        self.rest = b""

    @property
    def trailers(self) -> Headers:
        return []

    @property
    def is_complete(self) -> bool:
        return self.left == 0

    def feed(self, data: bytes) -> bool:
        size = len(data)
        if size > self.left:
            self.rest = data[self.left :]
            data = data[: self.left]
            size = self.left
        self.raw = data
        self.payload = (data,) if data else ()
        self.left -= size
        return self.left == 0


class OpenBody:
    """Everything until the connection closes."""

    __slots__ = ("payload", "raw", "rest")

    is_complete = False

    def __init__(self) -> None:
        self.raw = b""
        self.payload: Sequence[bytes] = ()
        self.rest = b""

    @property
    def trailers(self) -> Headers:
        return []

    def feed(self, data: bytes) -> bool:
        self.raw = data
        self.payload = (data,) if data else ()
        return False


BodyReader = FixedBody | OpenBody | ChunkScanner


def reader_of(length: int) -> BodyReader:
    if length == CHUNKED:
        return ChunkScanner()
    if length == UNTIL_CLOSE:
        return OpenBody()
    return FixedBody(length)


def note(body: Body, payload: Sequence[bytes], sample_bytes: int) -> None:
    """Count what went by and keep its first bytes."""
    for piece in payload:
        kept = len(body.sample)
        if kept < sample_bytes:
            body.sample += piece[: sample_bytes - kept]
        body.size_bytes += len(piece)
