"""Server-sent events, read as they come: any line ending, any chunking."""

from __future__ import annotations

from collections.abc import Callable

_BOM = b"\xef\xbb\xbf"
MAX_LINES = 64
"""Of one event; the rest is one buffer: a million lines of two bytes would take twenty times their size."""


class EventTooLong(Exception):
    """One event is above the limit."""


class EventReader:
    """Calls `on_message` with the data of every `message` event; keeps the last id and the retry time.

    Events of another name go to `on_other`, where one is given. An event without data is not a message: servers
    send one to give the client an id to come back with.
    """

    def __init__(
        self,
        on_message: Callable[[bytes], None],
        most_bytes: int,
        last_id: str = "",
        on_other: Callable[[bytes, bytes], None] | None = None,
    ) -> None:
        self.last_id = last_id
        self.retry_ms: int | None = None
        self._on_message = on_message
        self._on_other = on_other
        self._most_bytes = most_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._more = bytearray()
        self._data_bytes = 0
        self._type = b""
        self._skip_newline = False
        self._is_first = True

    def feed(self, chunk: bytes) -> None:
        if self._skip_newline:
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            # A CR at the end of a chunk may be half of a CRLF.
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        for part in lines:
            self._keep(part)
            line = bytes(self._line)
            self._line.clear()
            self._take(line)
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._line += part
        if len(self._line) + self._data_bytes > self._most_bytes:
            raise EventTooLong(f"an event has more than {self._most_bytes} bytes")

    def _take(self, line: bytes) -> None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            if len(self._data) < MAX_LINES:
                self._data.append(value)
            else:
                self._more += b"\n" + value
            self._data_bytes += len(value) + 1
        elif name == b"event":
            self._type = value
        elif name == b"id":
            last_id = value.decode("utf-8", "replace")
            if last_id.isprintable():  # it goes back in a header
                self.last_id = last_id
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)

    def _dispatch(self) -> None:
        message, kind = b"\n".join(self._data), self._type
        if self._more:
            message += self._more
            self._more = bytearray()
        self._data, self._data_bytes, self._type = [], 0, b""
        if message and kind in (b"", b"message"):
            self._on_message(message)
        elif message and self._on_other is not None:
            self._on_other(kind, message)
