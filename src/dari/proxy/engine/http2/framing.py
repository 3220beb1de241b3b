"""Chunks for a body whose length HTTP/2 does not tell, and a request of HTTP/1.1 read back into its parts. Sans-I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dari.proxy.engine.bodies import BodyReader, reader_of
from dari.proxy.engine.heads import RequestHead, head_end
from dari.proxy.flow import Headers


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def last_chunk(trailers: Headers) -> bytes:
    return b"0\r\n" + b"".join(b"%b: %b\r\n" % field for field in trailers) + b"\r\n"


class Part(NamedTuple):
    """What a piece of a request holds. `head` is there once, `is_end` with the last."""

    head: RequestHead | None
    payload: Sequence[bytes]
    is_end: bool
    trailers: Headers


class RequestReader:
    """Takes a request as the exchange writes it, in any pieces."""

    def __init__(self) -> None:
        self._buffer = b""
        self._body: BodyReader | None = None
        self._has_ended = False

    def feed(self, data: bytes) -> Part | None:
        """None while the head is not complete. Raises BadHead or BadChunk, which our own writing never causes."""
        if self._has_ended:
            return None
        head: RequestHead | None = None
        if self._body is None:
            self._buffer += data
            end = head_end(self._buffer)
            if end < 0:
                return None
            head = RequestHead(self._buffer[:end])
            data, self._buffer = self._buffer[end:], b""
            self._body = reader_of(head.length)
        is_end = self._body.feed(data)
        self._has_ended = is_end
        return Part(head, self._body.payload, is_end, self._body.trailers)
