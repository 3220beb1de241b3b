"""The page's own files: read once, compressed once, sent with a validator. Nothing outside the folder can be named."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from functools import cache
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}


class StaticFile(Struct, frozen=True):
    content_type: str
    plain: bytes
    gzipped: bytes
    etag: str


@cache
def _names() -> frozenset[str]:
    return frozenset(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file())


def find_file(name: str) -> StaticFile | None:
    """The file of that name below the folder; None when there is none."""
    return _load(name) if name in _names() else None


@cache
def _load(name: str) -> StaticFile:
    path = FOLDER / name
    plain = path.read_bytes()
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return StaticFile(kind, plain, gzip.compress(plain, 9, mtime=0), f'"{hashlib.sha256(plain).hexdigest()[:20]}"')
