"""Chunks for a body whose length HTTP/2 does not tell, and a request of HTTP/1.1 read back into its parts. Sans-I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dari.proxy.engine.body_framing import BodyReader, reader_of
from dari.proxy.engine.heads import RequestHead, head_end
from dari.proxy.flow import Headers

_FRAME_HEAD_BYTES = 9


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def last_chunk(trailers: Headers) -> bytes:
    return b"0\r\n" + b"".join(b"%b: %b\r\n" % field for field in trailers) + b"\r\n"


class FrameCutter:
    """Cuts what was read into pieces of some frames each, so that the work on one piece has a bound."""

    def __init__(self, skip_bytes: int, most_frames: int) -> None:
        self._left = skip_bytes
        """Of the frame that the last piece ended in, or of what stands before the first one."""
        self._head = b""
        """The beginning of a frame's head, whose end has not arrived."""
        self._most = most_frames

    def cut(self, data: bytes) -> list[tuple[bytes, int]]:
        """Each piece with the number of frames that begin in it."""
        cut: list[tuple[bytes, int]] = []
        start = frames = 0
        position, size = self._left, len(data)
        if self._head:
            missing = _FRAME_HEAD_BYTES - len(self._head)
            head = self._head + data[:missing]
            if len(head) < _FRAME_HEAD_BYTES:
                self._head = head
                return [(data, 0)]
            position, frames = missing + int.from_bytes(head[:3], "big"), 1
            self._head = b""
        while position + _FRAME_HEAD_BYTES <= size:
            if frames == self._most:
                cut.append((data[start:position], frames))
                start, frames = position, 0
            frames += 1
            position += _FRAME_HEAD_BYTES + int.from_bytes(data[position : position + 3], "big")
        if position < size:
            self._head, self._left = data[position:], 0
        else:
            self._left = position - size
        cut.append((data[start:], frames))
        return cut


class RequestPart(NamedTuple):
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

    def feed(self, data: bytes) -> RequestPart | None:
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
        return RequestPart(head, self._body.payload, is_end, self._body.trailers)
