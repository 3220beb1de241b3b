"""What the pool and its children say to each other: length-prefixed frames on a pipe.

To the child: one frame with the document's path, frames with the file's bytes, an empty frame. From it: one frame
with a `Reply`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import IO

import msgspec
from msgspec import Struct

from dari.knowledge.document import ParsedDocument
from dari.struct_types import ready

PIECE_BYTES = 1 << 20
_LENGTH = struct.Struct("<I")


class Reply(Struct, frozen=True):
    document: ParsedDocument | None = None
    reason: str = ""
    message: str = ""
    hint: str = ""
    is_last: bool = False
    """The child ends after this one: it has grown, or run out of memory once."""


encode_reply = msgspec.msgpack.Encoder().encode
decode_reply = msgspec.msgpack.Decoder(ready(Reply)).decode


class BrokenPipe(Exception):
    """The other side is gone, or says what it may not."""


def write_request(pipe: IO[bytes], doc_path: str, read: Callable[[], bytes], max_bytes: int) -> None:
    """A file, piece by piece; a small one is one write. OverflowError when it is longer than allowed."""
    name = doc_path.encode("utf-8", "surrogatepass")
    first = read()
    head = _LENGTH.pack(len(name)) + name + _LENGTH.pack(len(first)) + first
    sent = len(first)
    piece = read() if first else b""
    while piece:
        pipe.write(head)
        head = _LENGTH.pack(len(piece)) + piece
        if (sent := sent + len(piece)) > max_bytes:
            raise OverflowError(sent)
        piece = read()
    pipe.write(head + _LENGTH.pack(0))
    pipe.flush()


def write_frame(pipe: IO[bytes], data: bytes) -> None:
    if len(data) < PIECE_BYTES:
        pipe.write(_LENGTH.pack(len(data)) + data)
        return
    pipe.write(_LENGTH.pack(len(data)))
    view = memoryview(data)
    while view:  # an unbuffered pipe takes what fits
        view = view[pipe.write(view) :]


def read_frame(pipe: IO[bytes], max_bytes: int) -> bytes:
    """BrokenPipe at the end of the pipe, OverflowError when the frame is longer than allowed."""
    size = _LENGTH.unpack(_read_exactly(pipe, _LENGTH.size))[0]
    if size > max_bytes:
        raise OverflowError(size)
    return _read_exactly(pipe, size)


def _read_exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise BrokenPipe
    return data
