"""Which parser reads a file: by its name, and by its first bytes where the name says nothing or lies."""

from __future__ import annotations

from pathlib import PurePath

from dari.knowledge.document import Media
from dari.syntax.languages import CODE_LANGUAGES, CODE_NAMES, language_of_script

HEAD_BYTES = 4096

_MARKDOWN = frozenset(["md", "mdx", "markdown", "mdown", "mkd", "qmd", "rmd"])
_TEXT = frozenset(
    ("txt", "text", "rst", "adoc", "asciidoc", "org", "log", "csv", "tsv", "tex", "bib", "srt", "vtt", "po", "eml")
)
_HTML = frozenset(["html", "htm", "xhtml"])
_OFFICE = frozenset(["docx", "pptx", "xlsx", "docm", "pptm", "xlsm"])
_IMAGE = frozenset(["png", "jpg", "jpeg", "webp", "gif", "tif", "tiff", "bmp"])
_TEXT_NAMES = frozenset(
    ("readme", "license", "licence", "copying", "notice", "authors", "changelog", "changes", "news", "todo", "install")
)
_LOCK_FILES = frozenset(
    (
        *("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "cargo.lock", "uv.lock", "go.sum"),
        *("composer.lock", "gemfile.lock"),
    )
)
_IMAGE_MAGIC = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*", b"BM")


def media_of(path: PurePath, head: bytes) -> Media | None:
    """None: no parser reads it. `head` are the first bytes (`HEAD_BYTES` are plenty); empty: the name decides alone."""
    name = path.name.lower()
    if name in _LOCK_FILES:
        return None
    extension = name.rpartition(".")[2] if "." in name.lstrip(".") else ""
    if head.startswith(b"%PDF-"):
        return "pdf"
    named = _media_of_name(name, extension)
    if named in ("markdown", "text", "html", "code", "notebook") and _is_foreign(head):
        return None
    if named is not None:
        return named
    return _media_of_head(extension, head)


def is_picture(head: bytes) -> bool:
    """Whether it begins as one of the pictures that are read does."""
    return head.startswith(_IMAGE_MAGIC) or (head.startswith(b"RIFF") and head[8:12] == b"WEBP")


def _media_of_name(name: str, extension: str) -> Media | None:
    if name in CODE_NAMES or name.startswith("dockerfile.") or extension == "dockerfile":
        return "code"
    if extension in _MARKDOWN:
        return "markdown"
    if extension in _TEXT or (not extension and name in _TEXT_NAMES):
        return "text"
    if extension == "pdf":
        return "pdf"
    if extension in _HTML:
        return "html"
    if extension in _OFFICE:
        return "office"
    if extension == "ipynb":
        return "notebook"
    if extension in _IMAGE:
        return "image"
    return "code" if extension in CODE_LANGUAGES else None


def _media_of_head(extension: str, head: bytes) -> Media | None:
    """A script without an extension. Any other unknown file stays out: guesses would index build products."""
    if not extension and language_of_script(head):
        return "code"
    return None


def _is_foreign(head: bytes) -> bool:
    """A picture, an archive or a program under a text file's name. UTF-16 has NUL bytes too, and is text."""
    return head.startswith((b"PK\x03\x04", b"\x7fELF", b"\x1f\x8b", b"\xca\xfe\xba\xbe", *_IMAGE_MAGIC[:3]))
