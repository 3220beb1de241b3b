"""What happened to one server lately, for people: its states, its log messages, the end of its stderr."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.bridge.config.secret import Mask
from dari.core.context import LoggingMessage
from dari.rpc.codec import encode
from dari.text.sanitize import strip_hidden

if TYPE_CHECKING:
    from dari.process.child import Child
    from dari.process.stderr_tail import StderrTail

MAX_EVENTS = 100
MAX_PROCESSES = 2
"""Whose stderr is kept: the one that runs, and the one before it, which may say why it ended."""
MAX_TEXT_CHARS = 2000

LogSource = Literal["event", "stderr", "message"]


class LogLine(Struct, frozen=True):
    """`event`: what the supervisor did; `message`: what the server logged over MCP."""

    at: float
    """Seconds since the epoch."""
    source: LogSource
    text: str
    level: str = ""
    """The state for an event, the level of a message."""
    pid: int | None = None


class ServerJournal:
    """Bounded; texts are without secrets and without characters that hide."""

    def __init__(self, mask: Mask, clock: Callable[[], float] = time.time) -> None:
        self._mask = mask
        self._clock = clock
        self._events: deque[LogLine] = deque(maxlen=MAX_EVENTS)
        self._tails: deque[tuple[int, StderrTail]] = deque(maxlen=MAX_PROCESSES)
        self._noted = 0

    @property
    def revision(self) -> tuple[int, ...]:
        """Another value when there is something new."""
        return (self._noted, *(tail.received_bytes for _, tail in self._tails))

    def note_state(self, state: str, error: str = "") -> None:
        self._note("event", error, state)

    def note_message(self, message: LoggingMessage) -> None:
        text = message.data if isinstance(message.data, str) else encode(message.data).decode()
        self._note("message", text, message.level)

    def watch(self, child: Child) -> None:
        """Keep the end of what this process writes to stderr, also after its end."""
        self._tails.append((child.pid, child.tail))
        self._note("event", f"process {child.pid}", "started")

    def lines(self, limit: int) -> list[LogLine]:
        """The last ones, oldest first."""
        found = list(self._events)
        for pid, tail in self._tails:
            found += [LogLine(line.at, "stderr", self._mask(line.text), pid=pid) for line in tail.lines()]
        found.sort(key=lambda line: line.at)
        return found[-limit:]

    def _note(self, source: LogSource, text: str, level: str) -> None:
        self._noted += 1
        self._events.append(LogLine(self._clock(), source, self._mask(strip_hidden(text[:MAX_TEXT_CHARS])), level))
