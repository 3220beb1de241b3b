"""A connection to an origin: reads responses for the exchange it serves, waits in the pool between two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dari.proxy.engine.body_framing import BadChunk, BodyReader, FixedBody, UntilCloseBody, reader_of
from dari.proxy.engine.flow_control import PEER_FULL, PIECE_BYTES, FlowControlledProtocol
from dari.proxy.engine.heads import UNTIL_CLOSE, BadHead, ResponseHead, head_end, read_response_head

if TYPE_CHECKING:
    from dari.proxy.engine.exchange import Exchange
    from dari.proxy.engine.pool import UpstreamPool

MAX_INTERIM = 1_000
"""Of one response: a server that works for hours says so every few seconds."""


class Route(Struct, frozen=True, gc=False, cache_hash=True):
    """Where to connect and whom to expect there; connections of one route can stand in for each other."""

    scheme: str
    host: str
    port: int
    server_name: str
    """For SNI and for verification; differs from `host` when the client named another one in its handshake."""
    is_multiplexed: bool = False
    """HTTP/2 may be spoken there: it is offered by ALPN, or known beforehand when the scheme is http."""


class UpstreamConnection(FlowControlledProtocol):
    def __init__(self, pool: UpstreamPool, route: Route) -> None:
        self._pool = pool
        self.route = route
        self.exchange: Exchange | None = None
        self.is_reused = False
        self.tls: tuple[str | None, str | None, str | None] | None = None
        """Version, ALPN and subject, once they were asked for."""
        self.unprocessed: bytes | None = None
        """A request that the origin said it has not looked at: it may be sent again, whatever it is."""
        self.is_lost = False
        self.idle_since = 0.0
        self._buffer = b""
        self._head: ResponseHead | None = None
        self._body: BodyReader | None = None
        self._interim = 0
        self._is_clean = True
        """Nothing arrived that belongs to no response."""

    @property
    def has_answered(self) -> bool:
        """Whether anything of the current response arrived."""
        return self._head is not None or bool(self._buffer)

    def serve(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._head = self._body = None
        self._buffer = b""
        self._interim = 0

    def release(self) -> None:
        """The exchange is over; wait for the next one if the connection is good for it."""
        head = self._head
        self.exchange = None
        if head is not None and head.keep_alive and self._is_clean and not self.is_lost and self._body is None:
            self.free(~0)
            self._pool.put(self)
        else:
            self.transport.close()

    def drop(self) -> None:
        """The exchange is over and the connection is in the middle of something."""
        self.exchange = None
        if not self.is_lost:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._sliced or (len(data) > PIECE_BYTES and not isinstance(self._body, FixedBody | UntilCloseBody)):
            self.in_slices(data, self._received)
        else:
            self._received(data)

    def _received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            # Nobody asked: the next request would take it for its answer.
            self.is_lost = True
            self._pool.forget(self)
            self.transport.abort()
            return
        try:
            if self._head is None:
                self._read_head(exchange, data)
            elif self._body is not None:
                self._read_body(exchange, data)
            else:
                self._is_clean = False
        except (BadHead, BadChunk) as error:
            self.exchange = None
            self.transport.abort()
            exchange.download.upstream_failed(f"the origin's response is malformed: {error}")

    def _read_head(self, exchange: Exchange, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        while True:
            end = head_end(data)
            if end < 0:
                self._buffer = data
                return
            head = read_response_head(data[:end], exchange.head.method)
            data = data[end:]
            if head.status >= 200 or head.status == 101:
                break
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise BadHead(f"more than {MAX_INTERIM} interim responses")
            exchange.download.informational(head)
            if not data:
                self._buffer = b""
                return
        self._buffer = b""
        self._head = head
        if head.status == 101:
            exchange.download.switched(head, data + self.take_rest())
        elif head.length == 0:
            self._is_clean = not data and not self.has_more
            exchange.download.response_begins(head, b"", (), True)
        elif 0 < head.length == len(data):
            # Most responses arrive in one piece.
            self._is_clean = not self.has_more
            exchange.download.response_begins(head, data, (data,), True)
        else:
            self._body = body = reader_of(head.length)
            is_complete = body.feed(data)
            self._end_of(body, is_complete)
            exchange.download.response_begins(head, body.raw, body.payload, is_complete)

    def _read_body(self, exchange: Exchange, data: bytes) -> None:
        body = self._body
        assert body is not None
        is_complete = body.feed(data)
        self._end_of(body, is_complete)
        exchange.download.response_continues(body.raw, body.payload, is_complete)

    def _end_of(self, body: BodyReader, is_complete: bool) -> None:
        if is_complete:
            self._body = None
            self._is_clean = not body.rest and not self.has_more
            if body.trailers and self.exchange is not None:
                self.exchange.flow.response_body.trailers = body.trailers

    def eof_received(self) -> bool:
        if self.ends_later():
            return True
        exchange = self.exchange
        if exchange is not None and self._head is not None and self._head.length == UNTIL_CLOSE and self._body:
            self._body = None
            self.is_lost = True
            exchange.download.response_continues(b"", (), True)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if rest := self.take_rest():
            self._received(rest)
        self.is_lost = True
        exchange = self.exchange
        if exchange is None:
            self._pool.forget(self)
            return
        self.exchange = None
        exchange.download.upstream_lost(self, exc)

    def pause_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.client.hold(PEER_FULL)

    def resume_writing(self) -> None:
        if self.exchange is not None:
            self.exchange.client.free(PEER_FULL)
