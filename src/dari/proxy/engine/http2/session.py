"""A connection of HTTP/2, on either side: streams by number, windows, fair turns, and what a peer may not do.

Frames are written once per turn of the loop, one per stream and round, so that a large body leaves room for others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    UnknownFrameReceived,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from dari.core.slices import Sliced
from dari.proxy.engine.flow_control import PIPELINED, SLICED, FlowControlledProtocol
from dari.proxy.engine.heads import BadHead
from dari.proxy.engine.http2.fields import trailers_of
from dari.proxy.engine.http2.framing import FrameCutter
from dari.proxy.engine.http2.stream import Http2Stream
from dari.proxy.engine.http2.wire import Wire
from dari.proxy.flow import Headers

if TYPE_CHECKING:
    from dari.proxy.engine.core import EngineContext

_MAX_BUDGET = 1000.0
_PER_S = 200.0
# A request that is taken back has cost its whole way up.
RESET = 5.0
FRAME = 1.0
MAX_WINDOW_CREDIT = 100_000.0
# Some clients give back each 4 KiB twice, to the stream and to the connection.
_WINDOW_PER_BYTE = 1 / 512


class FloodBudget:
    """Fills with time and with every request that was served to its end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = _MAX_BUDGET
        self._windows = 0.0
        self._at = clock()

    def spend(self, cost: float) -> bool:
        """False when it is used up."""
        now = self._clock()
        self._left = min(self._left + (now - self._at) * _PER_S, _MAX_BUDGET) - cost
        self._at = now
        return self._left >= 0

    def earn(self) -> None:
        self._left = min(self._left + RESET, _MAX_BUDGET)

    def sent(self, size_bytes: int) -> None:
        """A body went out: the peer will open its windows again."""
        self._windows = min(self._windows + 2 + size_bytes * _WINDOW_PER_BYTE, MAX_WINDOW_CREDIT)

    def window_opened(self) -> bool:
        """One update for what was sent costs nothing, one for nothing is idle talk."""
        if self._windows >= 1:
            self._windows -= 1
            return True
        return self.spend(FRAME)


# Given back in steps: a WINDOW_UPDATE for each frame would double the number of frames.
_STEP_BYTES = 1024 * 1024
# Bodies stop at the transport's own limit; above this it is answers to pings that nobody reads.
_UNREAD_BYTES = 1024 * 1024
MAX_FRAMES = 64
"""Handed to h2 at once: a frame costs it some 50 µs, and 256 KiB can hold 28,000 of them."""
PREAMBLE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Http2Session(FlowControlledProtocol):
    abort_code = ErrorCodes.CANCEL
    """What a stream is reset with when its owner gives it up."""

    def __init__(self, core: EngineContext, is_server: bool) -> None:
        self.core = core
        self.loop = core.loop
        self.wire = Wire(client_side=not is_server)
        self.streams: dict[int, Http2Stream] = {}
        self.is_draining = False
        """One side has said that no new streams begin."""
        self._budget = FloodBudget(core.clock)
        self._cutter = FrameCutter(len(PREAMBLE) if is_server else 0, MAX_FRAMES)
        self._frames: Sliced[tuple[bytes, int]] = Sliced(
            self._received, lambda: self.hold(SLICED), lambda: self.free(SLICED)
        )
        self._mute = 0
        self._ready: dict[Http2Stream, None] = {}
        self._trailers: dict[int, Headers] = {}
        self._unread = 0
        self._is_full = False
        self._is_busy = False
        """The frames of this turn will be written at its end."""

    # From the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.wire.open()
        self._write_out()

    def data_received(self, data: bytes) -> None:
        self._frames.take(self._cutter.cut(data))

    def _received(self, piece: tuple[bytes, int]) -> None:
        data, frames = piece
        if self.transport.is_closing():
            return
        self._is_busy = True
        try:
            events = self.wire.receive_data(data)
        except ProtocolError as error:
            self._is_busy = False
            self.fail(f"not HTTP/2: {str(error) or type(error).__name__}")
            return
        # Frames that nothing comes of, such as those for streams that are over. An event may come a piece later.
        self._mute = max(0, self._mute + frames - len(events))
        if self._mute > MAX_FRAMES and not self._spend(FRAME * (self._mute - MAX_FRAMES)):
            return
        self._mute = min(self._mute, MAX_FRAMES)
        for event in events:
            self._meet(event)
            if self.transport.is_closing():
                return
        self.batch_done()
        self._is_busy = False
        self._flush()

    def eof_received(self) -> bool:
        if self._frames:
            self._frames.then(self.transport.close)
        return bool(self._frames)

    def connection_lost(self, exc: Exception | None) -> None:
        self._frames.clear()
        detail = f": {exc}" if exc is not None else ""
        self._lose_streams(f"the connection was closed{detail}")

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self.free(PIPELINED)
        self._flush()

    # From streams.

    def wants(self, stream: Http2Stream) -> None:
        """It has something to send."""
        self._ready[stream] = None
        self._flush_soon()

    def sent(self, size_bytes: int) -> None:
        """A piece of a body is on its way."""
        self._budget.sent(size_bytes)

    def give_back(self, size: int, number: int) -> None:
        self._quietly(lambda: self.wire.increment_flow_control_window(size, number))

    def reset_stream(self, stream: Http2Stream, code: ErrorCodes) -> None:
        self.forget(stream)
        if stream.number:
            self._quietly(lambda: self.wire.reset_stream(stream.number, code))

    def forget(self, stream: Http2Stream) -> None:
        self._ready.pop(stream, None)
        if self.streams.pop(stream.number, None) is not None:
            self.stream_gone()

    # For the two sides.

    def meet(self, event: Event) -> None:
        """What only one side can receive."""
        raise NotImplementedError

    def batch_done(self) -> None:
        """All that one read brought has been met."""

    def stream_gone(self) -> None:
        """There is one stream less."""

    def goaway(self, code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Say that this is the end, and why."""
        self.is_draining = True
        self._quietly(lambda: self.wire.close_connection(code))
        self._write_out()

    def fail(self, reason: str, code: ErrorCodes | None = None) -> None:
        """The peer broke the protocol: nothing on this connection can be trusted any more."""
        self.is_draining = True
        if code is not None:
            self.goaway(code)
        self._write_out()
        self._lose_streams(reason)
        self.transport.close()

    # Inside.

    def _meet(self, event: Event) -> None:
        kind = type(event)
        if isinstance(event, DataReceived):
            self._data(event)
        elif isinstance(event, StreamEnded):
            if (stream := self.streams.get(event.stream_id)) is not None:
                stream.receive_end(self._trailers.pop(event.stream_id, []))
        elif isinstance(event, WindowUpdated):
            if self._budget.window_opened():
                self._reopen(event.stream_id)
            else:
                self._calm()
        elif isinstance(event, TrailersReceived):
            self._trail(event)
        elif isinstance(event, StreamReset):
            if event.remote_reset and not self._spend(RESET):
                return
            self._reset(event)
        elif isinstance(event, ConnectionTerminated):
            self.told_to_go(event.last_stream_id or 0, event.error_code)
        elif kind in (PingReceived, PriorityUpdated, UnknownFrameReceived, RemoteSettingsChanged):
            if self._spend(FRAME) and kind is RemoteSettingsChanged:
                self._reopen(0)
        else:
            self.meet(event)

    def told_to_go(self, last: int, code: ErrorCodes | int | None) -> None:
        self.is_draining = True
        self.stream_gone()

    def _data(self, event: DataReceived) -> None:
        size = event.flow_controlled_length
        self._unread += size
        if self._unread >= _STEP_BYTES:
            step, self._unread = self._unread, 0
            self._quietly(lambda: self.wire.increment_flow_control_window(step))
        if not event.data and event.stream_ended is None and not self._spend(FRAME):
            return
        if (stream := self.streams.get(event.stream_id)) is not None:
            stream.receive(event.data, size)

    def _trail(self, event: TrailersReceived) -> None:
        stream = self.streams.get(event.stream_id)
        if stream is None:
            return
        try:
            if event.stream_ended is None:
                raise BadHead("trailers that are not the end")
            self._trailers[event.stream_id] = trailers_of(event.headers)
        except BadHead as error:
            stream.reset(ErrorCodes.PROTOCOL_ERROR, str(error))

    def _reset(self, event: StreamReset) -> None:
        stream = self.streams.get(event.stream_id)
        self._trailers.pop(event.stream_id, None)
        if stream is not None:
            stream.lost()
            self.forget(stream)
            self.stream_reset(stream, event.error_code)

    def stream_reset(self, stream: Http2Stream, code: ErrorCodes | int | None) -> None:
        stream.owner.stream_lost(f"the stream was reset: {_name(code)}")

    def _spend(self, cost: float) -> bool:
        if self._budget.spend(cost):
            return True
        self._calm()
        return False

    def _calm(self) -> None:
        self.fail("too many frames that carry nothing", ErrorCodes.ENHANCE_YOUR_CALM)

    def _lose_streams(self, reason: str) -> None:
        streams = list(self.streams.values())
        self.streams.clear()
        self._ready.clear()
        for stream in streams:
            if not stream.is_closing():
                stream.lost()
                stream.owner.stream_lost(reason)

    def _reopen(self, number: int) -> None:
        """A window grew: of one stream, or with 0 of all."""
        if number:
            if (stream := self.streams.get(number)) is not None:
                self._ready[stream] = None
        else:
            self._ready.update(dict.fromkeys(self.streams.values()))

    def _quietly(self, send: Callable[[], None]) -> None:
        """The peer may have ended the stream, or everything, in frames that were read but not yet met."""
        try:
            send()
        except ProtocolError:
            return
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self.loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._is_busy = False
        self._flush()

    def _flush(self) -> None:
        touched = list(self._ready)
        while self._ready and not self._is_full:
            for stream in list(self._ready):
                if not self._pump(stream):
                    self._ready.pop(stream, None)
            self._write_out()
        self._write_out()
        for stream in touched:
            stream.relieve()

    def _pump(self, stream: Http2Stream) -> bool:
        try:
            return stream.pump()
        except ProtocolError as error:
            stream.reset(ErrorCodes.INTERNAL_ERROR, str(error))
            return False

    def _write_out(self) -> None:
        data = self.wire.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)
            if self._is_full and self.transport.get_write_buffer_size() > _UNREAD_BYTES:
                self.hold(PIPELINED)


def _name(code: ErrorCodes | int | None) -> str:
    return code.name if isinstance(code, ErrorCodes) else str(code)
