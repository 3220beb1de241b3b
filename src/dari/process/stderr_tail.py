"""The end of a child's stderr, bounded, with the time of each line."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from dari.text.sanitize import strip_hidden

MAX_TAIL_BYTES = 16 * 1024
MAX_TAIL_LINES = 200
MAX_LINE_BYTES = 2048


class TailLine(Struct, frozen=True):
    at: float
    """Seconds since the epoch."""
    text: str


class StderrTail(asyncio.Protocol):
    """Reads always, so that the writer never blocks; keeps the last lines and forgets the rest."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.ended = asyncio.Event()
        self.dropped_lines = 0
        self.received_bytes = 0
        self._clock = clock
        self._lines: deque[tuple[float, bytes]] = deque()
        self._size_bytes = 0
        self._open = bytearray()

    def data_received(self, data: bytes) -> None:
        self.received_bytes += len(data)
        *lines, rest = data.split(b"\n")
        if lines:
            now = self._clock()
            self._keep(now, bytes(self._open) + lines[0])
            self._open.clear()
            if len(lines) > MAX_TAIL_LINES:
                self.dropped_lines += len(lines) - 1 - MAX_TAIL_LINES
            for line in lines[1:][-MAX_TAIL_LINES:]:
                self._keep(now, line)
        # A line without an end keeps its start: that is where the message is.
        self._open += rest[: max(0, MAX_LINE_BYTES + 1 - len(self._open))]

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    def lines(self) -> list[TailLine]:
        """Oldest first; nothing in them moves a cursor."""
        kept = [TailLine(at, _shown(line)) for at, line in self._lines]
        return [*kept, TailLine(self._clock(), _shown(bytes(self._open)))] if self._open else kept

    def text(self) -> str:
        return "\n".join(line.text for line in self.lines()).strip()

    def _keep(self, at: float, line: bytes) -> None:
        line = line[: MAX_LINE_BYTES + 1]
        self._lines.append((at, line))
        self._size_bytes += len(line)
        while len(self._lines) > MAX_TAIL_LINES or self._size_bytes > MAX_TAIL_BYTES:
            self._size_bytes -= len(self._lines.popleft()[1])
            self.dropped_lines += 1


def _shown(line: bytes) -> str:
    text = strip_hidden(line[:MAX_LINE_BYTES].decode("utf-8", "replace").rstrip("\r"))
    return f"{text}…" if len(line) > MAX_LINE_BYTES else text
