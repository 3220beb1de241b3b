"""The page's own files: read once, compressed once, sent with a validator. Nothing outside the folder can be named.

`/static/VERSION/NAME` is a file of the folder; `/static/VERSION/LANGUAGE/NAME` is a chunk of scripts in that language.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import mimetypes
import re
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from dari.console.script_chunks import FRAME, LANGUAGES, all_texts, chunk_names, chunk_source, chunks_of

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}
ALL_TEXTS = "texts/all.js"
"""Every text of a language in one file: what a page asks for when a person switches to that language."""
_COMMENTS = re.compile(rb"/\*.*?\*/", re.S)
_INDENTS = re.compile(rb"\n\s+")


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
    for name in ("script_chunks.py", "script_text.py"):  # they make what is sent under the version
        whole.update(Path(__file__).with_name(name).read_bytes())
    return whole.hexdigest()[:12]


def find_file(name: str) -> StaticFile | None:
    """The file of that name below the folder, with or without the version before it; None when there is none."""
    first, _, rest = name.partition("/")
    if first != version():
        return _load(name) if name in _names() else None
    language, _, chunk = rest.partition("/")
    if language in LANGUAGES:
        return _join(language, chunk) if chunk == ALL_TEXTS or chunk in chunk_names() else None
    return replace(_load(rest), is_lasting=True) if rest in _names() else None


@cache
def page_file(page: str, language: str, *, is_plain: bool = False) -> StaticFile:
    """The document for a page, which asks for that page's scripts at once; `is_plain`: for the sources as they are."""
    document = _load("index.html").plain.replace(b'<html lang="en">', b'<html lang="%b">' % language.encode())
    if not is_plain:
        root = f"/static/{version()}/"
        wanted = [f"{language}/{one}" for one in chunks_of(f"pages/{page or 'home'}.js")]
        preloads = "".join(f'<link rel="modulepreload" href="{root}{one}">\n' for one in wanted)
        script = f'<script type="module" src="{root}'
        before, after = f"{script}js/{FRAME}", f"{preloads}{script}{language}/{FRAME}"
        document = document.replace(before.encode(), after.encode())
        link = f'<link rel="stylesheet" href="{root}app.css">'
        document = document.replace(link.encode(), b"<style>%b</style>" % _frame_style())
    return _make("text/html; charset=utf-8", document)


@cache
def frame_style_hash() -> str:
    """What a content security policy calls the style that stands in the document: the first paint waits for no file."""
    return f"sha256-{base64.b64encode(hashlib.sha256(_frame_style()).digest()).decode()}"


def _frame_style() -> bytes:
    return _load("app.css").plain


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
    if path.suffix == ".css":
        plain = strip_style(plain)
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return _make(kind, plain)


@cache
def _join(language: str, name: str) -> StaticFile:
    source = all_texts(language) if name == ALL_TEXTS else chunk_source(name, language, f"/static/{version()}")
    return replace(_make(_TYPES[".js"], source.encode()), is_lasting=True)


def _make(content_type: str, plain: bytes) -> StaticFile:
    etag = f'"{hashlib.sha256(plain).hexdigest()[:20]}"'
    return StaticFile(content_type, plain, gzip.compress(plain, 9, mtime=0), etag)


def strip_style(source: bytes) -> bytes:
    """Without comments and indentation: a tenth less to send."""
    return _INDENTS.sub(b"\n", _COMMENTS.sub(b"", source)).lstrip()
