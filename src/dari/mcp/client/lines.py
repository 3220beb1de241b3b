"""Newline-delimited messages from a server: lines of any size up to a limit, whatever the chunks."""

from __future__ import annotations

import re

from msgspec import Struct

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_SKIPPED_BYTES = 4 * MAX_LINE_BYTES
"""Of one line: what writes on after that never ends it, and reading it would take a processor for as long."""
_KEPT_BYTES = 512
# Most servers write the id near one end of a message: Python's first, TypeScript's last.
_ID_AT_START = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\b')
_ID_AT_END = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class TooLong(Struct, frozen=True):
    """A line above the limit: only its ends were kept."""

    size_bytes: int
    head: bytes
    tail: bytes

    @property
    def request_id(self) -> int | None:
        return find_request_id(self.head + self.tail)


def find_request_id(answer: bytes) -> int | None:
    """The id that an answer has which cannot be read as a whole, where one end shows it."""
    head = answer[:_KEPT_BYTES]
    if b'"method"' in head:
        return None  # a server that prints what it is asked
    found = _ID_AT_START.search(head) or _ID_AT_END.search(answer[-_KEPT_BYTES:])
    return None if found is None else int(found[1])


class Lines:
    """Splits what was read. Blank lines are dropped."""

    def __init__(self, most_bytes: int = MAX_LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._skipped_bytes = 0
        self._head = b""

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        end = data.find(b"\n")
        if end < 0:
            self._keep(data)
            return []
        if end == len(data) - 1 and not self._buffer and end <= self._most_bytes:
            return [data] if not data.isspace() else []
        first, *middle, last = data.split(b"\n")
        self._keep(first)
        lines = [self._take()]
        for line in middle:
            self._keep(line)
            lines.append(self._take())
        self._keep(last)
        return [line for line in lines if isinstance(line, TooLong) or (line and not line.isspace())]

    @property
    def is_endless(self) -> bool:
        """Whether the line that is being read is past every use."""
        return self._skipped_bytes > MAX_SKIPPED_BYTES

    def _keep(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > self._most_bytes:
            if not self._skipped_bytes:
                self._head = bytes(self._buffer[:_KEPT_BYTES])
            surplus = len(self._buffer) - _KEPT_BYTES
            self._skipped_bytes += surplus
            del self._buffer[:surplus]

    def _take(self) -> bytes | TooLong:
        line = bytes(self._buffer)
        self._buffer.clear()
        if not self._skipped_bytes:
            return line
        skipped, self._skipped_bytes = self._skipped_bytes, 0
        return TooLong(skipped + len(line), self._head, line[-_KEPT_BYTES:])
