"""One file to one document, in this process. `ParserPool` runs this in a child with limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from dari.knowledge.document import Media, ParsedDocument
from dari.knowledge.parse.detect import HEAD_BYTES, media_of
from dari.knowledge.parse.limits import ParseFailed, ParseLimits


def parse_file(path: Path, doc_path: str, limits: ParseLimits | None = None) -> ParsedDocument:
    """ParseFailed says why not. It may be slow, and a hostile file may harm this process: see `ParserPool`."""
    limits = limits or ParseLimits()
    with open_regular(path, doc_path) as file:
        data = file.read(limits.max_file_bytes + 1)
    return parse_bytes(data, doc_path, limits)


@contextmanager
def open_regular(path: Path, doc_path: str) -> Iterator[IO[bytes]]:
    """A regular file, open; a pipe or a device is refused, since reading it may never end. Errors are ParseFailed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ParseFailed("unsupported", f"only regular files are read: {doc_path}")
        with os.fdopen(descriptor, "rb") as file:
            yield file
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ParseFailed("io_error", f"{doc_path} must be readable: {reason}", "check who may read it") from None


def parse_bytes(data: bytes, doc_path: str, limits: ParseLimits | None = None) -> ParsedDocument:
    limits = limits or ParseLimits()
    name = PurePosixPath(doc_path)
    media = media_of(name, data[:HEAD_BYTES])
    if media is None:
        raise ParseFailed("unsupported", f"no parser reads {name.suffix or name.name!r} files: {doc_path}")
    if len(data) > limits.max_file_bytes:
        raise ParseFailed(
            "size_exceeded", f"a file must have at most {limits.max_file_bytes} bytes: {doc_path}", "split it"
        )
    document = _parse(media, data, name, limits)
    if len(document.blocks) > limits.max_blocks:
        raise ParseFailed(
            "output_exceeded",
            f"a file must have at most {limits.max_blocks} blocks, got {len(document.blocks)}: {doc_path}",
            "split it",
        )
    if not document.title:
        document = msgspec.structs.replace(document, title=default_title(name, media))
    return document


def default_title(name: PurePosixPath, media: Media) -> str:
    """Of a document that has none."""
    return _shown(name.name if media == "code" else name.stem or name.name)


def _shown(name: str) -> str:
    """A name that is not UTF-8 reaches Python with lone surrogates, which no wire carries."""
    return name.encode("utf-8", "backslashreplace").decode()


def is_simple(doc_path: str, data: bytes) -> bool:
    """Whether it is read by our own code alone, in linear time: no library that could hang or crash."""
    return media_of(PurePosixPath(doc_path), data[:HEAD_BYTES]) in ("markdown", "text")


def parse_safely(data: bytes, doc_path: str, limits: ParseLimits) -> ParsedDocument:
    """As `parse_bytes`, and whatever a parser's library raises is ParseFailed."""
    try:
        return parse_bytes(data, doc_path, limits)
    except ParseFailed:
        raise
    except MemoryError:
        raise ParseFailed("memory", f"{doc_path} needs more memory than a parser may have") from None
    except RecursionError:
        raise ParseFailed("malformed", f"{doc_path} is nested too deeply") from None
    except Exception as error:  # a library may raise anything; it costs this file only
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise ParseFailed("malformed", f"{doc_path} cannot be parsed: {reason}") from None


def _parse(media: Media, data: bytes, name: PurePosixPath, limits: ParseLimits) -> ParsedDocument:
    """Parsers are imported when the first file of their kind comes: a folder of notes needs no PDF library."""
    if media == "markdown":
        from dari.knowledge.parse.markdown import parse_markdown

        return parse_markdown(data)
    if media == "text":
        from dari.knowledge.parse.text import parse_text

        return parse_text(data, name.suffix[1:].lower())
    if media == "pdf":
        from dari.knowledge.parse.pdf import parse_pdf

        return parse_pdf(data, limits)
    if media == "html":
        from dari.knowledge.parse.html import parse_html

        return parse_html(data)
    if media == "office":
        from dari.knowledge.parse.office import parse_office

        return parse_office(data, name.suffix[1:].lower(), limits)
    if media == "notebook":
        from dari.knowledge.parse.notebook import parse_notebook

        return parse_notebook(data)
    if media == "image":
        from dari.knowledge.parse.image import parse_image

        return parse_image(data, limits)
    from dari.knowledge.parse.code import parse_code

    return parse_code(data, name, limits)
