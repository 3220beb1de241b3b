"""Content blocks for people: text as text, JSON laid out, pictures and sounds described or saved to files."""

from __future__ import annotations

import base64
import binascii
import os
import re
from pathlib import Path
from typing import Any

from dari.cli.remote.payloads import pretty, size_text
from dari.cli.remote.world import World
from dari.core.content import AudioContent, Contents, EmbeddedResource, ImageContent, ResourceLink, TextContent
from dari.errors import InvalidInput
from dari.mcp.client.results import Block
from dari.os_errors import describe_os_error, suggest_next_step
from dari.rpc.codec import UNREADABLE, decode_any
from dari.text.sanitize import escape_hidden

_MAX_JSON_CHARS = 4_000_000
_SUFFIXES = {
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "image/webp": ".webp",
    "image/avif": ".avif",
}
"""What Python's own table has on some machines only."""


class Saved:
    """Where binary contents go: into `folder` under names of their own, or nowhere."""

    def __init__(self, folder: Path | None, stem: str) -> None:
        self._folder = folder
        self._stem = re.sub(r"[^\w.-]+", "_", stem).strip("._") or "content"
        self._count = 0

    def keep(self, data: str, mime_type: str) -> str:
        """Describe base64 data, saved when a folder was named."""
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return f"{mime_type or 'binary'}, no base64"
        told = f"{mime_type or 'binary'}, {size_text(len(content))}"
        if self._folder is None:
            return told
        return f"{told}, saved to {self.write(content, mime_type)}"

    def write(self, content: bytes, mime_type: str) -> Path:
        """A new file: nothing that exists is written over, and no link is followed."""
        assert self._folder is not None
        kind = mime_type.partition(";")[0].strip().lower()
        import mimetypes

        suffix = _SUFFIXES.get(kind) or mimetypes.guess_extension(kind) or ".bin"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            while True:
                self._count += 1
                path = self._folder / f"{self._stem}-{self._count}{suffix}"
                try:
                    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
                except FileExistsError:
                    continue
                with open(file, "wb") as stream:
                    stream.write(content)
                return path
        except OSError as error:
            raise InvalidInput(
                f"cannot save to {self._folder}: {describe_os_error(error)}",
                suggest_next_step(error, "name another folder"),
            ) from error


def saved(output: str | None, world: World, stem: str) -> Saved:
    """For `--output DIR`, seen from where the command was typed."""
    return Saved(None if output is None else world.view.around.cwd / output, stem)


def block_text(block: Block, store: Saved) -> str:
    """One block as a person reads it; harmless on a terminal."""
    if isinstance(block, TextContent):
        return text_of(block.text)
    if isinstance(block, ImageContent | AudioContent):
        return escape_hidden(
            f"[{'image' if isinstance(block, ImageContent) else 'audio'}: {store.keep(block.data, block.mime_type)}]"
        )
    if isinstance(block, EmbeddedResource):
        return contents_text(block.resource, store)
    if isinstance(block, ResourceLink):
        said = f" – {block.description}" if isinstance(block.description, str) else ""
        return escape_hidden(f"[link: {block.name} <{block.uri}>{said}]", one_line=True)
    return pretty(block.fields)


def contents_text(contents: Contents, store: Saved) -> str:
    """A resource's contents with the address in front."""
    head = f"[resource: {escape_hidden(contents.uri, one_line=True)}"
    mime = contents.mime_type if isinstance(contents.mime_type, str) else ""
    if isinstance(contents.blob, str):
        return f"{head}, {escape_hidden(store.keep(contents.blob, mime), one_line=True)}]"
    return f"{head}{f', {escape_hidden(mime, one_line=True)}' if mime else ''}]\n{text_of(contents.text or '')}"


def text_of(text: str) -> str:
    """Text, harmless; JSON documents laid out (design 001 §4)."""
    value = as_json(text)
    return escape_hidden(text) if value is None else pretty(value)


def as_json(text: str) -> Any:
    """The object or list that a text is in JSON, else None."""
    if text[:64].lstrip()[:1] not in ("{", "[") or len(text) > _MAX_JSON_CHARS:
        return None
    try:
        return decode_any(text.encode())
    except (*UNREADABLE, UnicodeEncodeError):
        return None
