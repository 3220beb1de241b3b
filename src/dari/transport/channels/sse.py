"""Server-sent events, read as they come: any line ending, any chunking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """One event is above the limit."""


@dataclass(slots=True)
class EventReader:
    """Calls `on_message` with the data of every `message` event; keeps the last id and the retry time.

    An event without data is not a message: servers send one to give the client an id to come back with.
    """

    on_message: Callable[[bytes], None]
    most_bytes: int
    last_id: str = ""
    retry_ms: int | None = None

    _line: bytearray = None  # type: ignore[assignment]
    _data: list[bytes] = None  # type: ignore[assignment]
    _type: bytes = b""
    _size_bytes: int = 0
    _skip_newline: bool = False
    _is_first: bool = True

    def __post_init__(self) -> None:
        self._line = bytearray()
        self._data = []

    def feed(self, chunk: bytes) -> None:
        if self._is_first and chunk:
            self._is_first = False
            chunk = chunk.removeprefix(_BOM)
        if self._skip_newline and chunk:
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            # A CR at the end of a chunk may be half of a CRLF.
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = chunk.split(b"\n")
        self._keep(first)
        for part in rest:
            line = bytes(self._line)
            self._line.clear()
            self._take(line)
            self._keep(part)

    def _keep(self, part: bytes) -> None:
        self._line += part
        self._size_bytes += len(part)
        if self._size_bytes > self.most_bytes:
            raise EventTooLong(f"an event has more than {self.most_bytes} bytes")

    def _take(self, line: bytes) -> None:
        if not line:
            self._dispatch()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value
        elif name == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
        elif not name:
            self._size_bytes -= len(line)  # a comment, which a long silent stream may have many of

    def _dispatch(self) -> None:
        data, kind = self._data, self._type
        self._data, self._type, self._size_bytes = [], b"", len(self._line)
        if data and kind in (b"", b"message"):
            message = data[0] if len(data) == 1 else b"\n".join(data)
            if message:
                self.on_message(message)
