"""Content codings and charsets undone when a body is read, never on the way through, and never without a limit."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, cast

from dari.proxy import headers
from dari.proxy.flow import Headers

DECODED_LIMIT_BYTES = 8 * 1024 * 1024
PIECE_BYTES = 64 * 1024
# RFC 9659: a zstd window above 8 MB is not for HTTP; a frame may ask for gigabytes.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# What follows a gzip member is copied once for each: without a bound, 8 MB of empty members take minutes.
_GZIP_SLICE_BYTES = 16 * 1024
MAX_GZIP_MEMBERS = 10_000
# Each coding multiplies: five layers of gzip around zeros are 100 bytes for terabytes, all of them time.
MAX_CODINGS = 3

_BINARY_KINDS = ("image/", "audio/", "video/", "font/", "application/octet-stream", "application/zip")
_BINARY_NAMES = (
    "application/pdf",
    "application/wasm",
    "application/grpc",
    "application/x-protobuf",
    "application/gzip",
)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class Undecodable(Exception):
    """The bytes are not what Content-Encoding says; the message says why."""


@dataclass(slots=True)
class Decoded:
    """As much as could be undone: `is_cut` when the limit ended it, `problem` when the data did."""

    data: bytes
    is_cut: bool = False
    problem: str | None = None


def decode(pieces: Iterable[bytes], codings: list[str], limit_bytes: int = DECODED_LIMIT_BYTES) -> Decoded:
    """Undo the codings, the last one first; never holds more than the limit and one piece."""
    if len(codings) > MAX_CODINGS:
        return Decoded(b"", problem=f"{len(codings)} content codings on one body; {MAX_CODINGS} are undone at most")
    stream: Iterator[bytes] = iter(pieces)
    for name in reversed(codings):
        undo = _UNDO.get(name)
        if undo is None:
            return Decoded(_take(pieces, limit_bytes).data, problem=f"unknown content coding {name!r}")
        stream = undo(stream)
    return _take(stream, limit_bytes)


def text_of(data: bytes, head: Headers) -> tuple[str, str] | None:
    """The text and the charset it was read with, or nothing when it is not text."""
    kind = headers.mime(head)
    if kind.startswith((*_BINARY_KINDS, *_BINARY_NAMES)) and kind != "image/svg+xml":
        return None
    name = _charset(data, head, kind)
    if name is None:
        return None
    return data.decode(name, "replace"), "utf-8" if name == "utf-8-sig" else name


def sample_text(sample: bytes, head: Headers) -> str | None:
    """The text in the first bytes of a body, decoded as far as they go."""
    found = text_of(decoded_sample(sample, head), head)
    return None if found is None else found[0]


def decoded_sample(sample: bytes, head: Headers) -> bytes:
    """The first bytes of a body without its codings."""
    codings = headers.codings(head)
    return decode((sample,), codings).data if codings else sample


def _charset(data: bytes, head: Headers, kind: str) -> str | None:
    for mark, name in _BOMS:
        if data.startswith(mark):
            return name
    named = headers.charset(head)
    if named is None and ("html" in kind or "xml" in kind or not kind):
        found = _META.search(data[:2048]) or _XML.search(data[:2048])
        named = found[1].decode("ascii", "replace") if found else None
    if named is not None and (codec := headers.codec(named)) is not None:
        return codec
    if b"\0" in data[:8192]:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # a character that is cut off at the end is allowed
    except UnicodeDecodeError:
        controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in data[:1024])
        return "windows-1252" if controls * 50 <= min(len(data), 1024) else None
    return "utf-8"


def _take(stream: Iterable[bytes], limit_bytes: int) -> Decoded:
    taken = bytearray()
    try:
        for piece in stream:
            taken += piece
            if len(taken) > limit_bytes:
                return Decoded(bytes(taken[:limit_bytes]), is_cut=True)
    except Undecodable as error:
        return Decoded(bytes(taken), problem=str(error))
    return Decoded(bytes(taken))


def _gunzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(31)
    is_inside = False
    members = 0
    for rest in _slices(pieces, _GZIP_SLICE_BYTES):
        while rest:
            if members and not is_inside and not (rest := rest.lstrip(b"\0")):
                break
            try:
                out = inflater.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise Undecodable(f"not gzip: {error}") from error
            if out:
                yield out
            rest = inflater.unconsumed_tail
            is_inside = not inflater.eof
            if inflater.eof:
                rest = inflater.unused_data
                inflater = zlib.decompressobj(31)
                members += 1
                if rest and members >= MAX_GZIP_MEMBERS:
                    raise Undecodable(f"more than {MAX_GZIP_MEMBERS:,} gzip members")
    if is_inside:
        raise Undecodable("the gzip data ends early")


def _slices(pieces: Iterator[bytes], size_bytes: int) -> Iterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), size_bytes):
            yield piece[start : start + size_bytes]


def _inflate(pieces: Iterator[bytes]) -> Iterator[bytes]:
    inflater = None
    for piece in pieces:
        if inflater is None and piece:
            # RFC 9110 says zlib format; some servers send the bare deflate stream.
            is_zlib = piece[0] & 15 == 8 and (len(piece) < 2 or int.from_bytes(piece[:2], "big") % 31 == 0)
            inflater = zlib.decompressobj(15 if is_zlib else -15)
        rest = piece
        while rest and inflater is not None and not inflater.eof:
            try:
                out = inflater.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise Undecodable(f"not deflate: {error}") from error
            if out:
                yield out
            rest = inflater.unconsumed_tail
    if inflater is not None and not inflater.eof:
        raise Undecodable("the deflate data ends early")


def _unbrotli(pieces: Iterator[bytes]) -> Iterator[bytes]:
    import brotli  # type: ignore[import-untyped]

    decompressor = brotli.Decompressor()
    for piece in pieces:
        rest, has_more = piece, True
        while has_more:
            try:
                out = decompressor.process(rest, output_buffer_limit=PIECE_BYTES)
            except brotli.error as error:
                raise Undecodable(f"not brotli: {error}") from error
            if out:
                yield out
            # It takes input again before all its output is out.
            has_more = not decompressor.is_finished() and (out != b"" or not decompressor.can_accept_more_data())
            rest = b""
    if not decompressor.is_finished():
        raise Undecodable("the brotli data ends early")


def _unzstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    source = cast("IO[bytes]", _Readable(pieces))
    try:
        with decompressor.stream_reader(source, read_across_frames=True) as reader:
            while out := reader.read(PIECE_BYTES):
                yield out
    except zstandard.ZstdError as error:
        raise Undecodable(f"not zstd: {error}") from error


class _Readable:
    """An iterator of pieces as the file that zstandard wants to read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        taken, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return taken


_UNDO: dict[str, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}


_LIMIT_BYTES = 32 * 1024 * 1024
_DIGESTS = (b"content-md5", b"digest", b"content-digest", b"repr-digest")
"""Describe the bytes of a body that is no longer there."""


def recoded(body: bytes, head: Headers, edit: Callable[[bytes], bytes]) -> bytes:
    """A body that cannot be decoded, or not encoded again, stays as it is: half an edit would break the client."""
    try:
        return surely_recoded(body, head, edit)
    except Undecodable:
        return body


def surely_recoded(body: bytes, head: Headers, edit: Callable[[bytes], bytes]) -> bytes:
    """The same for edits without which the body may not go out: Undecodable where they cannot be made."""
    codings = headers.codings(head)
    if not codings:
        return edit(body)
    if unknown := [name for name in codings if name not in _CODE]:
        raise Undecodable(f"the content coding {unknown[0][:40]!r} is not known")
    decoded = decode((body,), codings, _LIMIT_BYTES)
    if decoded.is_cut or decoded.problem is not None:
        raise Undecodable(decoded.problem or f"unpacked it is larger than {_LIMIT_BYTES // 1024 // 1024} MB")
    edited = edit(decoded.data)
    if edited == decoded.data:
        return body
    for name in codings:
        edited = _CODE[name](edited)
    return edited


def in_charset(text: str, head: Headers) -> bytes | None:
    """The text in the charset that the head names; None where there is no such charset, or it lacks a character."""
    codec = headers.codec(headers.charset(head) or "utf-8")
    try:
        return None if codec is None else text.encode(codec)
    except UnicodeError:
        return None


def encoded(text: str, head: Headers) -> tuple[bytes, Headers]:
    """A body that a person wrote, as bytes that fit the head; a coding or charset that we cannot write is dropped."""
    head = [field for field in head if field[0].lower() not in _DIGESTS]
    data = in_charset(text, head)
    if data is None:
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
    import brotli

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
