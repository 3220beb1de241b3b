"""HTTP/2 towards an origin: one connection, many streams, each an `Upstream` to the exchange that uses it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from h2.events import Event, InformationalResponseReceived, ResponseReceived
from h2.exceptions import ProtocolError

from dari.proxy.engine.connector import ConnectFailed
from dari.proxy.engine.heads import CHUNKED, BadHead
from dari.proxy.engine.http2.fields import Fields, request_fields, response_head
from dari.proxy.engine.http2.framing import RequestReader, chunk, last_chunk
from dari.proxy.engine.http2.session import Http2Session
from dari.proxy.engine.http2.stream import Http2Stream
from dari.proxy.engine.http2.wire import MAX_STREAMS
from dari.proxy.engine.request_heads import tls_facts
from dari.proxy.engine.upstream import Route, UpstreamConnection
from dari.proxy.flow import Headers

if TYPE_CHECKING:
    from dari.proxy.engine.core import EngineContext

_NEVER = float("inf")
# What is kept of a request until somebody answers: more is not sent twice.
_KEPT_BYTES = 64 * 1024


async def reach(core: EngineContext, route: Route) -> UpstreamConnection:
    """A stream of a shared connection; a connection of its own where the origin speaks HTTP/1.1. Raises DialFailed."""
    pool = core.pool
    while True:
        upstream = pool.take(route, is_replayable=False)
        if upstream is not None:
            return upstream
        dialing = pool.dialing.get(route)
        if dialing is None or route in pool.unshared:
            break
        # One connection is enough for all that ask at the same time, and its failure is the failure of all.
        await asyncio.shield(dialing)
    done: asyncio.Future[None] = core.loop.create_future()
    pool.dialing[route] = done
    try:
        made = await core.dialer.open(route, lambda alpn: _peer(core, route, alpn))
    except ConnectFailed as error:
        done.set_exception(error)
        done.exception()  # it may be that nobody waits
        raise
    finally:
        if pool.dialing.get(route) is done:
            del pool.dialing[route]
        if not done.done():
            done.set_result(None)
    if isinstance(made, UpstreamConnection):
        pool.note_unshared(route)
        return made
    if made.is_draining:
        raise ConnectFailed(502, "the origin closed the connection without a response")
    return made.stream()


def _peer(core: EngineContext, route: Route, alpn: str | None) -> OriginSession | UpstreamConnection:
    # Without TLS there is nothing to agree by: the client knew that the origin speaks HTTP/2.
    return (
        OriginSession(core, route) if alpn == "h2" or route.scheme == "http" else UpstreamConnection(core.pool, route)
    )


class OriginSession(Http2Session):
    def __init__(self, core: EngineContext, route: Route) -> None:
        super().__init__(core, is_server=False)
        self.route = route
        self.pool = core.pool
        self.idle_since = _NEVER
        self.has_served = False
        self._lent: set[OriginStream] = set()
        self._tls: tuple[str | None, str | None, str | None] = (None, None, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._tls = tls_facts(self.transport)
        self.pool.share(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_draining = True
        self.pool.unshare(self)
        super().connection_lost(exc)

    @property
    def has_room(self) -> bool:
        limit = min(self.wire.remote_settings.max_concurrent_streams, MAX_STREAMS)
        return not self.is_draining and len(self._lent) < limit and self.wire.highest_outbound_stream_id < 1 << 30

    def stream(self) -> OriginStream:
        lent = OriginStream(self, self._tls, self.has_served)
        self._lent.add(lent)
        self.has_served = True
        self.idle_since = _NEVER
        return lent

    def returned(self, stream: OriginStream) -> None:
        self._lent.discard(stream)
        self._budget.earn()
        if not self._lent:
            self.idle_since = self.core.clock()
            if self.is_draining:
                self._leave()

    def retire(self) -> None:
        """Take nothing new, finish what runs."""
        self.is_draining = True
        self.pool.unshare(self)
        if not self._lent:
            self._leave()

    def admit(self, stream: Http2Stream) -> None:
        """Give it a number, in the order in which heads are sent."""
        stream.number = self.wire.get_next_available_stream_id()
        self.streams[stream.number] = stream

    def meet(self, event: Event) -> None:
        if isinstance(event, ResponseReceived | InformationalResponseReceived):
            stream = self.streams.get(event.stream_id)
            if stream is not None and isinstance(stream.owner, OriginStream):
                is_ended = isinstance(event, ResponseReceived) and event.stream_ended is not None
                stream.owner.stream_head(event.headers, is_ended)

    def told_to_go(self, last: int, code: ErrorCodes | int | None) -> None:
        self.retire()
        for lent in list(self._lent):
            if not lent.stream.number or lent.stream.number > last:
                self._unprocessed(lent.stream, f"the origin closed the connection: {code!r}")

    def stream_reset(self, stream: Http2Stream, code: ErrorCodes | int | None) -> None:
        if code == ErrorCodes.REFUSED_STREAM:
            self._unprocessed(stream, "the origin refused the stream")
        else:
            super().stream_reset(stream, code)

    def _unprocessed(self, stream: Http2Stream, reason: str) -> None:
        self.forget(stream)
        owner = stream.owner
        assert isinstance(owner, OriginStream)
        owner.unprocessed = owner.stream.kept
        stream.lost()
        owner.stream_lost(reason)

    def _pump(self, stream: Http2Stream) -> bool:
        try:
            return stream.pump()
        except ProtocolError as error:
            # The origin allows fewer streams than it did, or the numbers are used up.
            self._unprocessed(stream, str(error))
            return False

    def _lose_streams(self, reason: str) -> None:
        self.streams.clear()
        self._ready.clear()
        for lent in list(self._lent):
            if not lent.stream.is_closing():
                lent.stream.lost()
                lent.stream_lost(reason)

    def _leave(self) -> None:
        if not self.transport.is_closing():
            self.goaway()
            self.transport.close()


class _RequestStream(Http2Stream):
    """Takes a request in HTTP/1.1, as the exchange writes it, and sends it in HTTP/2."""

    def __init__(self, session: OriginSession, owner: OriginStream) -> None:
        super().__init__(session, owner)
        self._origin = session
        self._reader = RequestReader()
        self.kept: bytes | None = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_closing():
            return
        data = bytes(data)
        if self.kept is not None:
            self.kept = self.kept + data if len(self.kept) + len(data) <= _KEPT_BYTES else None
        part = self._reader.feed(data)
        if part is None:
            return
        if part.head is not None:
            self.send_head(request_fields(part.head, self._origin.route.scheme))
        for piece in part.payload:
            super().write(piece)
        if part.is_end:
            self.finish(part.trailers)

    def pump(self) -> bool:
        if not self.number:
            self._origin.admit(self)
        return super().pump()


class OriginStream(UpstreamConnection):
    """One request at an origin of HTTP/2. Its response reaches an exchange in the form of HTTP/1.1."""

    def __init__(self, session: OriginSession, tls: tuple[str | None, str | None, str | None], is_reused: bool) -> None:
        super().__init__(session.pool, session.route)
        self._session = session
        self.tls = tls
        self.is_reused = is_reused
        self.transport = self.stream = _RequestStream(session, self)
        self._is_over = False

    def release(self) -> None:
        self.exchange = None
        self._session.returned(self)
        self.stream.close()

    def drop(self) -> None:
        self.exchange = None
        self._session.returned(self)
        self.stream.abort()

    # From the stream.

    def stream_head(self, fields: Fields, is_ended: bool) -> None:
        exchange = self.exchange
        if exchange is None:
            return
        self.stream.kept = None
        try:
            head = response_head(fields, exchange.head.method, is_ended, exchange.head.version != "2")
        except BadHead as error:
            self.stream.reset(ErrorCodes.PROTOCOL_ERROR)
            self._session.returned(self)
            self.exchange = None
            exchange.download.upstream_failed(f"the origin's response is malformed: {error}")
            return
        if head.status < 200:
            exchange.download.informational(head)
            return
        self._head = head
        self.stream.expected = head.length if head.length >= 0 else None
        self._is_over = is_ended and head.length <= 0
        exchange.download.response_begins(head, b"", (), self._is_over)

    def stream_data(self, data: bytes) -> None:
        if self.exchange is not None and self._head is not None:
            raw = chunk(data) if self._head.length == CHUNKED else data
            self.exchange.download.response_continues(raw, (data,), False)

    def stream_ended(self, trailers: Headers) -> None:
        exchange, head = self.exchange, self._head
        if exchange is None or head is None or self._is_over:
            return
        exchange.flow.response_body.trailers = trailers or None
        exchange.download.response_continues(last_chunk(trailers) if head.length == CHUNKED else b"", (), True)

    def stream_lost(self, reason: str) -> None:
        self.is_lost = True
        self._session.returned(self)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.download.upstream_lost(self, ConnectionError(reason))
