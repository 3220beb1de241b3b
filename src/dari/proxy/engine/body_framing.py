"""Chunked framing, sans-I/O: tells which bytes are valid so far, what they carry and where the message ends.

llhttp does not say where in its input a message ended, which a proxy must know to pass the bytes on unchanged and
to begin the next message; so this is our own, as strict as llhttp, and a property test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dari.proxy.engine.heads import CHUNKED, UNTIL_CLOSE
from dari.proxy.flow import Body, Headers

# 15 digits stay below 2**60: no sum of sizes can overflow whatever the origin counts with.
# Extensions as RFC 9112 has them, without blanks: `;name`, `;name=word`, `;name="text"`.
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_TEXT = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*"'
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;%b(?:=(?:%b|%b))?)*" % (_TOKEN, _TOKEN, _TEXT))
_FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_LINE_BYTES = 4096
_TRAILER_BYTES = 16 * 1024
# A trailer is merged into the head by some receivers, so what decides framing, routing or trust is refused there.
_FORBIDDEN_TRAILERS = frozenset(
    (b"transfer-encoding", b"content-length", b"host", b"connection", b"trailer", b"te", b"upgrade", b"expect")
)

_SIZE, _DATA, _DATA_END, _TRAILER, _DONE = range(5)


class BadChunk(ValueError):
    """The bytes break the chunked framing."""


class ChunkScanner:
    """Feed it what arrived. `raw` is then valid and may go on as it is, `payload` is what it carries."""

    __slots__ = ("_left", "_pending", "_state", "_trailer_bytes", "payload", "raw", "rest", "trailers")

    def __init__(self) -> None:
        self._state = _SIZE
        self._left = 0
        self._pending = b""
        self._trailer_bytes = 0
        self.raw = b""
        self.payload: list[bytes] = []
        self.rest = b""
        """What follows the message, once it is complete."""
        self.trailers: Headers = []

    @property
    def is_complete(self) -> bool:
        return self._state == _DONE

    def feed(self, data: bytes) -> bool:
        """True when the body is complete. Raises BadChunk; `raw` then holds nothing of these bytes."""
        if self._pending:
            data = self._pending + data
            self._pending = b""
        self.raw = b""
        self.payload = payload = []
        position, size = 0, len(data)
        while position < size and self._state != _DONE:
            if self._state == _DATA:
                end = min(position + self._left, size)
                payload.append(data[position:end])
                self._left -= end - position
                position = end
                if not self._left:
                    self._state = _DATA_END
                continue
            if self._state == _DATA_END:
                if size - position < 2 and data[position] == 13:
                    break
                if data[position : position + 2] != b"\r\n":
                    raise BadChunk("chunk data does not end where its size says")
                position += 2
                self._state = _SIZE
                continue
            end = data.find(b"\r\n", position)
            if end < 0:
                _check_unfinished(data[position:])
                break
            self._line(data[position:end])
            position = end + 2
        if self._state == _DONE:
            self.rest = data[position:]
        else:
            self._pending = data[position:]
        if len(payload) > 1:
            # One write to disk, one sample: looking at the payload must not cost something for each byte of it.
            self.payload = [b"".join(payload)]
        self.raw = data[:position] if position < size else data
        return self._state == _DONE

    def _line(self, line: bytes) -> None:
        if len(line) > _LINE_BYTES:
            raise BadChunk("a chunk's size line or a trailer is too long")
        if self._state == _SIZE:
            found = _SIZE_LINE.fullmatch(line)
            if found is None:
                raise BadChunk("bad chunk size")
            self._left = int(found[1], 16)
            self._state = _DATA if self._left else _TRAILER
            return
        if not line:
            self._state = _DONE
            return
        self._trailer_bytes += len(line)
        found = _FIELD_LINE.fullmatch(line)
        if found is None or self._trailer_bytes > _TRAILER_BYTES or found[1].lower() in _FORBIDDEN_TRAILERS:
            raise BadChunk("bad trailer")
        self.trailers.append((found[1], found[2].rstrip(b" \t")))


def _check_unfinished(line: bytes) -> None:
    """A line without its end may wait for more only while it could still become a good one."""
    if len(line) > _LINE_BYTES or b"\n" in line or b"\r" in line[:-1] or b"\0" in line:
        raise BadChunk("a chunk's size line or a trailer is malformed")


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


class UntilCloseBody:
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


BodyReader = FixedBody | UntilCloseBody | ChunkScanner


def reader_of(length: int) -> BodyReader:
    if length == CHUNKED:
        return ChunkScanner()
    if length == UNTIL_CLOSE:
        return UntilCloseBody()
    return FixedBody(length)


def note_body(body: Body, payload: Sequence[bytes], sample_bytes: int) -> None:
    """Count what went by and keep its first bytes."""
    for piece in payload:
        kept = len(body.sample)
        if kept < sample_bytes:
            body.sample += piece[: sample_bytes - kept]
        body.size_bytes += len(piece)
