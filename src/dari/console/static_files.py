"""The page's own files: read once, compressed once, sent with a validator. Nothing outside the folder can be named."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}
_COMMENTS = re.compile(rb"^[ \t]*(?://.*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/[ \t]*)$", re.M)
_INDENTS = re.compile(rb"^[ \t]+", re.M)


class StaticFile(Struct, frozen=True):
    """`is_lasting`: it was asked for by an address that names this version, so it never changes there."""

    content_type: str
    plain: bytes
    gzipped: bytes
    etag: str
    is_lasting: bool = False


@cache
def _names() -> frozenset[str]:
    return frozenset(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file())


@cache
def version() -> str:
    """A name for these very files, which stands in their addresses."""
    whole = hashlib.sha256()
    for name in sorted(_names()):
        whole.update(name.encode() + b"\0" + (FOLDER / name).read_bytes())
    return whole.hexdigest()[:12]


def find_file(name: str) -> StaticFile | None:
    """The file of that name below the folder, with or without the version before it; None when there is none."""
    first, _, rest = name.partition("/")
    if first == version():
        return replace(_load(rest), is_lasting=True) if rest in _names() else None
    return _load(name) if name in _names() else None


def encode_for(file: StaticFile, accepted: bytes) -> tuple[bytes, bytes]:
    """The content coding and the body for an Accept-Encoding. Browsers take brotli of this machine's own pages too; the
    first time it costs some milliseconds."""
    codings = {one.partition(b";")[0].strip() for one in accepted.lower().split(b",")}
    if b"br" in codings:
        return b"br", _compress_brotli(file.plain)
    return (b"gzip", file.gzipped) if b"gzip" in codings else (b"", file.plain)


@cache
def _compress_brotli(plain: bytes) -> bytes:
    import brotli  # type: ignore[import-untyped, unused-ignore]

    return bytes(brotli.compress(plain, mode=brotli.MODE_TEXT))


@cache
def _load(name: str) -> StaticFile:
    path = FOLDER / name
    plain = path.read_bytes()
    if path.suffix == ".html":
        plain = plain.replace(b'"/static/', b'"/static/%b/' % version().encode())
    if path.suffix in (".js", ".css"):
        plain = strip_comments(plain)
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return StaticFile(kind, plain, gzip.compress(plain, 9, mtime=0), f'"{hashlib.sha256(plain).hexdigest()[:20]}"')


def strip_comments(source: bytes) -> bytes:
    """Without comments that have lines of their own and without indentation: a tenth less to send. Lines keep their
    numbers, so that an error in the page names the line of the source."""
    return _INDENTS.sub(b"", _COMMENTS.sub(lambda found: b"\n" * found[0].count(b"\n"), source))
