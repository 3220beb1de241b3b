"""Server-sent events: streams that outlive a connection, so that a client can come back for the rest."""

from __future__ import annotations

from collections import deque
from typing import Protocol

MAX_EVENTS = 1000
# What is kept for a session that has not opened its stream yet, and may never do so.
MAX_UNSOLICITED = 32
MAX_BYTES = 4 * 1024 * 1024
MAX_STREAMS = 32
MAX_KEPT_BYTES = 16 * 1024 * 1024
STANDING = "g"


class Sink(Protocol):
    """An open HTTP response that takes events."""

    def write_event(self, data: bytes) -> None: ...
    def end_events(self) -> None: ...
    async def drain(self) -> None: ...


def encode_event(message: bytes, event_id: str = "") -> bytes:
    """One message as an event."""
    if event_id:
        return b"id: %b\nevent: message\ndata: %b\n\n" % (event_id.encode(), message)
    return b"event: message\ndata: %b\n\n" % message


class EventStream:
    """Numbered events in a bounded ring; the oldest go first when a client stays away."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sink: Sink | None = None
        self.is_done = False
        self.delivered = 0
        """The number of the last event that went to a client."""
        self.size_bytes = 0
        self._events: deque[tuple[int, bytes]] = deque()
        self._next = 1

    def emit(self, message: bytes) -> None:
        data = encode_event(message, f"{self.name}-{self._next}")
        self._events.append((self._next, data))
        self.size_bytes += len(data)
        self._next += 1
        most_events = MAX_EVENTS if self.delivered or self.sink is not None else MAX_UNSOLICITED
        while len(self._events) > 1 and (len(self._events) > most_events or self.size_bytes > MAX_BYTES):
            self.size_bytes -= len(self._events.popleft()[1])
        if self.sink is not None:
            self.delivered = self._next - 1
            self.sink.write_event(data)

    async def drain(self) -> None:
        if self.sink is not None:
            await self.sink.drain()

    def prime(self, after: int) -> bytes:
        """The empty event that gives a client an id to come back with (2025-11-25)."""
        return b"id: %b-%d\ndata: \n\n" % (self.name.encode(), after)

    def attach(self, sink: Sink, after: int) -> None:
        """Send what the client has not seen, then whatever comes. A sink that was there before is ended."""
        if self.sink is not None:
            self.sink.end_events()
        self.sink = sink
        for number, data in self._events:
            if number > after:
                self.delivered = number
                sink.write_event(data)
        if self.is_done:
            self.finish()

    def detach(self, sink: Sink) -> None:
        if self.sink is sink:
            self.sink = None

    def finish(self) -> None:
        self.is_done = True
        sink, self.sink = self.sink, None
        if sink is not None:
            sink.end_events()


class EventStreams:
    """The streams of one session: one that stands for the session, one for each answer that became a stream."""

    def __init__(self) -> None:
        self._streams: dict[str, EventStream] = {}
        self._made = 0

    @property
    def is_watched(self) -> bool:
        return any(stream.sink is not None for stream in self._streams.values())

    def standing(self) -> EventStream:
        return self._streams.setdefault(STANDING, EventStream(STANDING))

    def open(self) -> EventStream:
        """A stream for one answer. Finished ones are kept for a client that lost its connection."""
        self._made += 1
        stream = EventStream(f"p{self._made}")
        finished = [name for name, old in self._streams.items() if old.is_done and old.sink is None]
        kept_bytes = sum(old.size_bytes for old in self._streams.values())
        for name in finished:
            if len(self._streams) < MAX_STREAMS and kept_bytes <= MAX_KEPT_BYTES:
                break
            kept_bytes -= self._streams.pop(name).size_bytes
        self._streams[stream.name] = stream
        return stream

    def find(self, last_event_id: str) -> tuple[EventStream, int] | None:
        """The stream an event id belongs to, and the number of that event."""
        name, dash, number = last_event_id.rpartition("-")
        stream = self._streams.get(name)
        if stream is None or not dash or not number.isascii() or not number.isdigit() or len(number) > 15:
            return None
        return stream, int(number)

    def close(self) -> None:
        for stream in self._streams.values():
            stream.finish()
        self._streams.clear()
