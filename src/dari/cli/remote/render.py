"""What a tool returned, on stdout: the payload alone, or a line that says how it went and the contents."""

from __future__ import annotations

import argparse
import base64
import binascii
import errno
import os
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from dari.cli.kit.console import escape_json, format_json, print_json, print_raw
from dari.cli.kit.table import format_duration, format_size
from dari.cli.remote.context import OK, TOOL, CommandContext
from dari.core.content import AudioContent, Contents, EmbeddedResource, ImageContent, ResourceLink, TextContent
from dari.errors import DariError, InvalidInput
from dari.mcp.client.decode import read
from dari.mcp.client.results import Block, CallResult, read_block
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


class ContentStore:
    """Where binary contents go: into `folder` under names of their own, or nowhere."""

    def __init__(self, folder: Path | None, stem: str) -> None:
        self._folder = folder
        # A file's name has at most 255 bytes, and a letter up to four.
        self._stem = re.sub(r"[^\w.-]+", "_", stem).strip("._")[:50] or "content"
        self._count = 0
        self._failure: InvalidInput | None = None

    def prepare(self) -> None:
        """Make the folder: that it cannot be made is said before a tool is called, whose result would be lost."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self._folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise self._refusal(error) from error

    def check(self) -> None:
        """Raise what kept a content from being saved; the result has been printed by then."""
        if self._failure is not None:
            raise self._failure

    def keep(self, data: str, mime_type: str) -> str:
        """Describe base64 data, saved when a folder was named."""
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return f"{mime_type or 'binary'}, no base64"
        summary = f"{mime_type or 'binary'}, {format_size(len(content), byte='bytes')}"
        if self._folder is None:
            return summary
        try:
            return f"{summary}, saved to {self._write(content, mime_type)}"
        except InvalidInput as failure:
            self._failure = failure
            return f"{summary}, not saved"

    def _write(self, content: bytes, mime_type: str) -> Path:
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
                try:
                    with open(file, "wb") as stream:
                        stream.write(content)
                except OSError:
                    path.unlink(missing_ok=True)  # half of a picture is none
                    raise
                return path
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> InvalidInput:
        return InvalidInput(
            f"cannot save to {self._folder}: {describe_os_error(error)}",
            suggest_next_step(error, "name another folder"),
        )


def make_content_store(output: str | None, context: CommandContext, stem: str) -> ContentStore:
    """For `--output DIR`, seen from where the command was typed. Ask for it before anything is sent."""
    store = ContentStore(None if output is None else context.view.around.cwd / output, stem)
    store.prepare()
    return store


def format_block(block: Block, store: ContentStore) -> str:
    """One block as a person reads it; harmless on a terminal."""
    if isinstance(block, TextContent):
        return format_text(block.text)
    if isinstance(block, ImageContent | AudioContent):
        return escape_hidden(
            f"[{'image' if isinstance(block, ImageContent) else 'audio'}: {store.keep(block.data, block.mime_type)}]"
        )
    if isinstance(block, EmbeddedResource):
        return format_resource(block.resource, store)
    if isinstance(block, ResourceLink):
        said = f" – {block.description}" if isinstance(block.description, str) else ""
        return escape_hidden(f"[link: {block.name} <{block.uri}>{said}]", one_line=True)
    return format_json(block.fields)


def format_resource(contents: Contents, store: ContentStore) -> str:
    """A resource's contents with the address in front."""
    head = f"[resource: {escape_hidden(contents.uri, one_line=True)}"
    mime = contents.mime_type if isinstance(contents.mime_type, str) else ""
    if isinstance(contents.blob, str):
        return f"{head}, {escape_hidden(store.keep(contents.blob, mime), one_line=True)}]"
    return f"{head}{f', {escape_hidden(mime, one_line=True)}' if mime else ''}]\n{format_text(contents.text or '')}"


def format_text(text: str) -> str:
    """Text, harmless; JSON documents laid out with every digit and member as it was sent (design 001 §4)."""
    return escape_hidden(text) if parse_json(text) is None else _laid_out(text.encode())


def _laid_out(data: bytes | Raw) -> str:
    return escape_json(msgspec.json.format(bytes(data), indent=2).decode())


def parse_json(text: str) -> Any:
    """The object or list that a text is in JSON, else None."""
    if text[:64].lstrip()[:1] not in ("{", "[") or len(text) > _MAX_JSON_CHARS:
        return None
    try:
        return decode_any(text.encode())
    except (*UNREADABLE, UnicodeEncodeError):
        return None


_OWN = ("content", "structuredContent", "isError", "_meta", "resultType")


def add_output_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    one = group.add_mutually_exclusive_group()
    one.add_argument("--json", action="store_true", help="print the result alone, as indented JSON")
    one.add_argument("--raw", action="store_true", help="print the result alone, exactly as the server sent it")
    group.add_argument("--output", metavar="DIR", help="save images, sounds and binary resources into this folder")


def show_result(
    result: Raw, arguments: argparse.Namespace, context: CommandContext, name: str, store: ContentStore, ms: float
) -> int:
    """Print, and return the exit code: a failure that the tool reports is 3, with its payload on stdout."""
    outcome = _read(result)
    is_error = outcome is not None and outcome.is_error
    if arguments.raw:
        print_raw(context.console, result)
    elif arguments.json:
        print_json(context.console, result)
    else:
        mark = "✗" if is_error else "✓"
        context.say(f"{mark} {escape_hidden(name, one_line=True)} ({format_duration(ms)})")
        for text in _texts(result, outcome, store):
            context.say(text)
    if arguments.output and (arguments.raw or arguments.json):
        _texts(result, outcome, store)
    store.check()
    if not is_error:
        return OK
    context.note(f"error: {name} reported an error{_summary(outcome)}")
    return TOOL


def _texts(result: Raw, outcome: CallResult | None, store: ContentStore) -> list[str]:
    blocks = _blocks(outcome) if outcome is not None else None
    if outcome is None or blocks is None:
        return [format_json(decode_any(result))]  # no result of a tool, and still what the server answered
    structured = outcome.structured_content
    texts = [format_block(block, store) for block in blocks if not _repeats(block, structured)]
    if structured is not None:
        texts.append(_laid_out(outcome.raw_structured))
    others = {name: value for name, value in _members(result).items() if name not in _OWN}
    if others:
        texts.append(format_json(others))
    return texts or ["(nothing)"]


def _read(result: Raw) -> CallResult | None:
    try:
        return read(result, CallResult, "tools/call result")
    except DariError:
        pass
    members = _members(result)
    return CallResult(is_error=True, raw_content=Raw(b"[]")) if members.get("isError") is True else None


def _blocks(outcome: CallResult) -> list[Block] | None:
    try:
        return [read_block(raw) for raw in msgspec.json.decode(outcome.raw_content, type=list[Raw])]
    except UNREADABLE:
        return None


def _members(result: Raw) -> dict[str, Any]:
    value = decode_any(result)
    return value if isinstance(value, dict) else {}


def _repeats(block: Block, structured: Any) -> bool:
    """Servers send structured content as text too, for clients that read only text."""
    return structured is not None and isinstance(block, TextContent) and parse_json(block.text) == structured


def _summary(outcome: CallResult | None) -> str:
    text = " ".join(outcome.text.split()) if outcome is not None else ""
    return f": {text[:199]}…" if len(text) > 200 else f": {text}" if text else ""
