"""The stream of `rg --json`, read as it comes: the first matches in the order of paths, in bounded memory.

ripgrep searches in all threads and prints files as they are done. Its own `--sort path` takes one thread, which costs a
second core's worth of time where matches are rare; so the order is made here, from what one page can hold.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Callable

import msgspec
from msgspec import Struct, field

from dari.codetools.search.cursor import SearchPosition
from dari.codetools.search.query import path_key
from dari.codetools.search.rows import (
    MAX_CONTEXT_CHARS,
    MAX_LINE_CHARS,
    MAX_SEEN_SPANS,
    FoundLine,
    Span,
    cut_context,
    cut_line,
)
from dari.struct_types import ready

MAX_EVENT_BYTES = 16 << 20
"""Of one line as JSON. A file with a longer one is searched again by our own engine, which reads it in pieces."""
_EAGER_BYTES = 32 << 10
"""Longer lines are cut as soon as they are read, instead of being kept until the page is made."""
MAX_UNORDERED_BYTES = 1 << 20
"""A search that prints more is started again in order, and stopped when the page is full."""


class _Text(Struct):
    text: str | None = None
    base64: str | None = field(default=None, name="bytes")

    def raw(self) -> bytes:
        return self.text.encode() if self.text is not None else b64decode(self.base64 or "")


class _Submatch(Struct):
    start: int
    end: int


class _Line(Struct):
    lines: _Text
    line_number: int
    absolute_offset: int
    submatches: list[_Submatch] = []


class _LineEvent(Struct, tag_field="type", tag="match"):
    data: _Line


class _ContextEvent(Struct, tag_field="type", tag="context"):
    data: _Line


class _Path(Struct):
    path: _Text
    binary_offset: int | None = None


class _PathEvent(Struct):
    data: _Path


_decode_line = msgspec.json.Decoder(ready(_LineEvent | _ContextEvent)).decode
_decode_path = msgspec.json.Decoder(ready(_PathEvent)).decode


class FileHits(Struct):
    """What was printed of one file: events that are still JSON, or lines that were cut already."""

    path: str
    key: bytes
    events: list[bytes | FoundLine] = []
    count: int = 0
    is_cut: bool = False
    """An event was longer than may be read."""
    context: int = 0

    def lines(self) -> list[FoundLine]:
        """Its lines; context goes to the match before it as long as that match may have some, and is shown once."""
        found: list[FoundLine] = []
        waiting: list[str] = []
        evidence: list[tuple[int, bytes]] = []
        for event in self.events:
            read = event if isinstance(event, FoundLine) else _decode_line(event)
            if isinstance(read, _ContextEvent):
                raw = _strip_end(read.data.lines.raw())
                text = cut_context(raw.decode("utf-8", "surrogateescape"))
                evidence.append((read.data.absolute_offset, raw[: 4 * MAX_CONTEXT_CHARS]))
                is_after = bool(found) and read.data.line_number <= found[-1].line + self.context
                (found[-1].after if is_after else waiting).append(text)
                continue
            line = to_line(read.data) if isinstance(read, _LineEvent) else read
            line.before, line.after, waiting = waiting, [], []
            found.append(line)
        if found:
            found[0].evidence += evidence
        return found


def to_line(data: _Line) -> FoundLine:
    """Offsets are bytes in the stream and characters in a row."""
    raw = data.lines.raw()
    stripped = _strip_end(raw)
    text = stripped.decode("utf-8", "surrogateescape")
    spans = [(one.start, min(one.end, len(stripped))) for one in data.submatches[:MAX_SEEN_SPANS]] or [(0, 0)]
    first_byte = spans[0][0]
    spans = [spans[0], *(span for span in spans[1:] if span[1] > span[0])]
    if len(text) != len(stripped):
        spans = _to_characters(stripped, spans)
    found = cut_line(data.line_number, text, spans)
    seen = max(0, first_byte - 4 * MAX_LINE_CHARS)
    found.evidence.append((data.absolute_offset + seen, stripped[seen : seen + 8 * MAX_LINE_CHARS]))
    return found


def _to_characters(raw: bytes, spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    at_byte = at_character = 0
    for start, end in spans:
        first = at_character + len(raw[at_byte:start].decode("utf-8", "surrogateescape"))
        last = first + len(raw[start:end].decode("utf-8", "surrogateescape"))
        found.append((first, last))
        at_byte, at_character = end, last
    return found


def _strip_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


class RipgrepReader:
    """Fed with pieces of the stream. `is_enough` when the page can be made, or when the search must be in order.

    It keeps the `wanted` first matches after `since`, in the order of paths: of files in any order, those that cannot
    be on the page are let go; of ordered files, reading ends as soon as there are enough.
    """

    def __init__(
        self,
        accepts: Callable[[str], bool],
        is_named: Callable[[str], bool],
        wanted: int,
        context: int,
        since: SearchPosition | None,
        *,
        is_ordered: bool,
        may_restart: bool,
    ) -> None:
        self._accepts = accepts
        self._is_named = is_named
        self._wanted = wanted
        self._context = context
        self._since = since
        self._is_ordered = is_ordered
        self._may_restart = may_restart
        self._files: dict[bytes, FileHits] = {}
        self._kept = 0
        self._last: bytes | None = None
        self._current: FileHits | None = None
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._is_discarding = False
        self._read_bytes = 0
        self.file_count = 0
        """Files with a match that were read about."""
        self.is_complete = False
        self.must_restart = False

    def feed(self, data: bytes) -> bool:
        """True when no more is needed."""
        self._read_bytes += len(data)
        first, newline, rest = data.partition(b"\n")
        if not newline:
            self._pend(data)
            return False
        if self._is_discarding:
            self._is_discarding = False
            if self._current is not None:
                self._current.is_cut = True
                self._current.count += 1
        else:
            first = b"".join((*self._pending, first))
            self._take(first)
        lines = rest.split(b"\n")
        self._pending, self._pending_bytes = [], 0
        self._pend(lines.pop())
        for line in lines:
            self._take(line)
        if self.is_complete:
            return True
        if self._is_ordered:
            return self._kept + (self._current.count if self._current is not None else 0) >= self._wanted
        if self._may_restart and self._read_bytes > MAX_UNORDERED_BYTES:
            self.must_restart = True
            return True
        return False

    def files(self) -> list[FileHits]:
        """In the order of paths."""
        if self._current is not None:
            self._end(None)
        return [self._files[key] for key in sorted(self._files)]

    def _pend(self, data: bytes) -> None:
        if self._is_discarding or not data:
            return
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes > MAX_EVENT_BYTES:
            self._pending, self._pending_bytes, self._is_discarding = [], 0, True

    def _take(self, line: bytes) -> None:
        if line.startswith(b'{"type":"match"'):
            if (current := self._current) is not None:
                self._match(current, line)
        elif line.startswith(b'{"type":"context"'):
            if (current := self._current) is not None and current.count <= self._wanted:
                current.events.append(line)
        elif line.startswith(b'{"type":"begin"'):
            self._begin(os.fsdecode(_decode_path(line).data.path.raw()))
        elif line.startswith(b'{"type":"end"'):
            self._end(line)
        elif line:
            self.is_complete = True  # the summary

    def _begin(self, path: str) -> None:
        key = path_key(path)
        self._current = None
        if key in self._files or not self._accepts(path):
            return
        self.file_count += 1
        if (self._since is not None and key < self._since.key) or (self._last is not None and key > self._last):
            return
        self._current = FileHits(path, key, [], context=self._context)

    def _match(self, current: FileHits, line: bytes) -> None:
        if current.count >= self._wanted:
            return
        is_first = self._since is not None and current.key == self._since.key
        if len(line) <= _EAGER_BYTES and not is_first:
            current.events.append(line)
        else:
            found = to_line(_decode_line(line).data)
            if is_first and self._since is not None and found.line <= self._since.line:
                current.events.clear()  # context of what was on the page before
                return
            current.events.append(found)
        current.count += 1

    def _end(self, line: bytes | None) -> None:
        current, self._current = self._current, None
        if current is None or not current.count:
            return
        if line is not None and self._is_named(current.path) and _decode_path(line).data.binary_offset is not None:
            return  # a binary file that was named: what ripgrep would call lines are none
        self._files[current.key] = current
        self._kept += current.count
        if not self._is_ordered and self._kept > 4 * self._wanted:
            self._prune()

    def _prune(self) -> None:
        """Let go of files that come after a full page."""
        kept = 0
        for key in sorted(self._files):
            if kept >= self._wanted:
                del self._files[key]
            else:
                kept += self._files[key].count
                self._last = key
        self._kept = kept
