"""One stream of a session, as a transport: what it writes waits for windows, what it does not read costs one window."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from h2.errors import ErrorCodes

from dari.proxy.engine.http2.wire import WINDOW_BYTES
from dari.proxy.flow import Headers

if TYPE_CHECKING:
    from dari.proxy.engine.http2.session import Http2Session

_HIGH_BYTES = 64 * 1024
_LOW_BYTES = 16 * 1024


class StreamOwner(Protocol):
    """Who reads and writes a stream."""

    def stream_data(self, data: bytes) -> None: ...
    def stream_ended(self, trailers: Headers) -> None: ...
    def stream_lost(self, reason: str) -> None:
        """It was reset, or its connection is gone; nothing more comes and nothing can be sent."""

    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class Http2Stream(asyncio.Transport):
    def __init__(self, session: Http2Session, owner: StreamOwner, number: int = 0) -> None:
        super().__init__()
        self.session = session
        self.number = number
        """0 until it is opened."""
        self.expected: int | None = None
        """How long the body must be that the peer sends."""
        self.owner = owner
        self._heads: list[Headers] = []
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._is_full = False
        self._has_finished = False
        self._trailers: Headers = []
        self.has_sent_end = False
        self._inbox: deque[tuple[bytes, int]] = deque()
        self._unread = 0
        self._received = 0
        self._is_paused = False
        self.has_received_end = False
        self._has_told_end = False
        self._their_trailers: Headers = []
        self._is_released = False
        """The owner has done with it."""
        self._is_closing = False

    # Out.

    def send_head(self, headers: Headers) -> None:
        """A response's head, informational or final; or a request's."""
        if not self._is_closing:
            self._heads.append(headers)
            self.session.wants(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self._has_finished or not data:
            return
        self._queue.append(memoryview(data))
        self._queued += len(data)
        self.session.wants(self)
        if self._queued > _HIGH_BYTES and not self._is_full:
            self._is_full = True
            self.owner.pause_writing()

    def finish(self, trailers: Headers) -> None:
        """Nothing more is written; what waits still goes out."""
        if not self._is_closing and not self._has_finished:
            self._has_finished = True
            self._trailers = trailers
            self.session.wants(self)

    def pump(self) -> bool:
        """Give h2 one frame's worth. False when there is nothing to send or no window for it."""
        wire = self.session.wire
        queue, is_last = self._queue, self._has_finished and not self._trailers
        if self._heads:
            heads, self._heads = self._heads, []
            for index, headers in enumerate(heads):
                self.has_sent_end = is_last and not queue and index == len(heads) - 1
                wire.send_headers(self.number, headers, end_stream=self.has_sent_end)
        elif queue:
            room = min(wire.local_flow_control_window(self.number), wire.max_outbound_frame_size)
            if room <= 0:
                return False
            piece = self._take(room)
            self.has_sent_end = is_last and not queue
            wire.send_data(self.number, piece, end_stream=self.has_sent_end)
            self.session.sent(len(piece))
        elif self._has_finished and not self.has_sent_end:
            self.has_sent_end = True
            if self._trailers:
                wire.send_headers(self.number, self._trailers, end_stream=True)
            else:
                wire.end_stream(self.number)
        else:
            return False
        self._settle()
        return bool(queue) or (self._has_finished and not self.has_sent_end)

    def relieve(self) -> None:
        """Call the owner back once most of what waited has gone out."""
        if self._is_full and self._queued <= _LOW_BYTES and not self._is_closing:
            self._is_full = False
            self.owner.resume_writing()

    def _take(self, room: int) -> bytes:
        parts: list[memoryview] = []
        while self._queue and room:
            part = self._queue.popleft()
            if len(part) > room:
                self._queue.appendleft(part[room:])
                part = part[:room]
            parts.append(part)
            room -= len(part)
            self._queued -= len(part)
        return b"".join(parts)

    # In.

    def receive(self, data: bytes, flow_bytes: int) -> None:
        """`flow_bytes` counts the padding as well."""
        self._received += len(data)
        if self.expected is not None and self._received > self.expected:
            self.reset(ErrorCodes.PROTOCOL_ERROR, "its body is longer than its content-length")
        elif self._is_paused or self._inbox:
            self._inbox.append((data, flow_bytes))
        elif not self._is_closing:
            self._give_back(flow_bytes)
            if data:
                self.owner.stream_data(data)

    def receive_end(self, trailers: Headers) -> None:
        self.has_received_end = True
        self._their_trailers = trailers
        if self.expected is not None and self._received != self.expected:
            self.reset(ErrorCodes.PROTOCOL_ERROR, "its body is shorter than its content-length")
        else:
            self._drain()

    def take_inbox(self) -> list[bytes]:
        """What arrived while reading was paused."""
        pieces: list[bytes] = []
        while self._inbox:
            data, flow_bytes = self._inbox.popleft()
            self._give_back(flow_bytes)
            if data:
                pieces.append(data)
        return pieces

    def take_end(self) -> Headers | None:
        """The trailers, if the end has arrived; returned once."""
        if self.has_received_end:
            self._has_told_end = True
        return self._their_trailers if self.has_received_end else None

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._inbox or (self.has_received_end and not self._has_told_end):
            # Not from inside the caller's frame: it may be in the middle of handing over what came before.
            self.session.loop.call_soon(self._drain)

    def _drain(self) -> None:
        while self._inbox and not self._is_paused and not self._is_closing:
            data, flow_bytes = self._inbox.popleft()
            self._give_back(flow_bytes)
            if data:
                self.owner.stream_data(data)
        if self.has_received_end and not (self._inbox or self._is_paused or self._has_told_end or self._is_closing):
            self._has_told_end = True
            self.owner.stream_ended(self._their_trailers)
            self._settle()

    def _give_back(self, flow_bytes: int) -> None:
        self._unread += flow_bytes
        if self._unread >= WINDOW_BYTES // 2 and not self.has_received_end and not self._is_closing:
            increment, self._unread = self._unread, 0
            self.session.give_back(increment, self.number)

    # Ends.

    def reset(self, code: ErrorCodes, reason: str | None = None) -> None:
        """End it for both sides; the owner gets a reason that it does not know yet."""
        if not self._is_closing:
            self.lost()
            self.session.reset_stream(self, code)
            if reason is not None:
                self.owner.stream_lost(reason)

    def lost(self) -> None:
        self._is_closing = True
        self._heads.clear()
        self._queue.clear()
        self._inbox.clear()
        self._queued = 0

    def close(self) -> None:
        """The owner has done with it: what waits goes out, what still comes is not read."""
        self._is_released = True
        if self._has_finished:
            self._settle()
        else:
            self.abort()

    def _settle(self) -> None:
        if self._is_closing or not self.has_sent_end:
            return
        if self._has_told_end or (self._is_released and self.has_received_end):
            self._is_closing = True
            self._inbox.clear()
            self.session.forget(self)
        elif self._is_released:
            # RFC 9113, 8.1: the answer is whole, the rest of the question is not wanted.
            self.reset(ErrorCodes.NO_ERROR)

    def abort(self) -> None:
        self.reset(self.session.abort_code)

    def is_closing(self) -> bool:
        return self._is_closing

    def get_write_buffer_size(self) -> int:
        return self._queued

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        # Its socket is shared: nobody may close or tune it for one stream.
        return default if name == "socket" else self.session.transport.get_extra_info(name, default)
