"""HTTP/2 towards a client: one session per connection; each stream is one request through the common exchange.

`StreamWriter` puts a response on the wire: fields, data and trailers of one stream.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from h2.events import Event, RequestReceived

from dari.proxy.engine import response_writer
from dari.proxy.engine.body_framing import BadChunk, BodyReader, reader_of
from dari.proxy.engine.client import ClientConnection, Via
from dari.proxy.engine.client_process import ConnectionOwner
from dari.proxy.engine.heads import CHUNKED, BadHead, RequestHead, ResponseHead, without
from dari.proxy.engine.hooks import PASS
from dari.proxy.engine.http2.fields import Fields, StreamHead, plain_fields
from dari.proxy.engine.http2.framing import chunk, last_chunk
from dari.proxy.engine.http2.session import FRAME, Http2Session
from dari.proxy.engine.http2.stream import Http2Stream
from dari.proxy.engine.http2.wire import MAX_STREAMS
from dari.proxy.engine.targets import BadTarget
from dari.proxy.flow import Flow, Headers

if TYPE_CHECKING:
    from dari.proxy.engine.core import EngineContext
    from dari.proxy.engine.exchange import Exchange


class StreamWriter:
    """Implements `ResponseWriter`."""

    __slots__ = ("_headers", "_status", "_stream")

    is_http2 = True

    def __init__(self, stream: Http2Stream) -> None:
        self._stream = stream
        self._status = 0
        self._headers: Headers = []

    def send_continue(self) -> None:
        self._send(100, [])

    def send_interim(self, head: ResponseHead) -> None:
        self._send(head.status, without(head.headers, head.drop or ()))

    def prepare(self, exchange: Exchange, head: ResponseHead, status: int) -> None:
        self._status, self._headers = status, response_writer.final_headers(exchange, head, status)

    def send_head(self, body: bytes) -> None:
        self._send(self._status, self._headers)
        if body:
            self._stream.write(body)

    def send_local_head(self, wire: bytes, flow: Flow) -> None:
        assert flow.status is not None
        self._send(flow.status, flow.response_headers)

    def end(self, exchange: Exchange) -> None:
        trailers = None if exchange.is_muted else exchange.flow.response_body.trailers
        self._stream.finish(plain_fields(trailers) if trailers else [])

    def leaves_upload(self, exchange: Exchange) -> bool:
        # The rest of an upload that nobody reads is not awaited: the next request has a stream of its own.
        return exchange.upstream is None

    def _send(self, status: int, headers: Headers) -> None:
        self._stream.send_head([(b":status", b"%d" % status), *plain_fields(headers)])


_NEVER = float("inf")


class ClientSession(Http2Session):
    abort_code = ErrorCodes.INTERNAL_ERROR

    def __init__(self, core: EngineContext, peer: str, via: Via, owner: ConnectionOwner | None = None) -> None:
        super().__init__(core, is_server=True)
        self.peer = peer
        self.via = via
        self.owner = owner
        self.tls_facts: tuple[str | None, str | None, str | None] = (None, None, None)
        self._requests: set[ClientStream] = set()
        self._fresh: list[tuple[ClientStream, StreamHead]] = []
        self._idle_until = core.clock() + core.config.idle_timeout_s

    @property
    def deadline(self) -> float:
        # Streams whose requests are over only wait for the client to read: it has as long as an idle one.
        return min((request.deadline for request in self._requests), default=self._idle_until)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.core.connections.add(self)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.tls_facts = self.via.sni, tls.version(), tls.selected_alpn_protocol()

    def connection_lost(self, exc: Exception | None) -> None:
        self.core.connections.discard(self)
        super().connection_lost(exc)

    def timed_out(self) -> None:
        if not self._requests:
            self.goaway()
            self.transport.close()
            return
        now = self.core.clock()
        for request in [one for one in self._requests if one.deadline < now]:
            request.timed_out()

    def abort(self) -> None:
        """Of every stream it is said which were begun, so that a client knows what it may ask elsewhere."""
        self.goaway()
        # A turn later: what was written goes out at the end of this one.
        self.loop.call_soon(self.transport.abort)

    def meet(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._begin(event)

    def batch_done(self) -> None:
        fresh, self._fresh = self._fresh, []
        for request, head in fresh:
            request.start(head)

    def request_over(self, request: ClientStream) -> None:
        self._requests.discard(request)
        if not request.stream.is_closing():  # not taken back, and not broken off
            self._budget.earn()
        self._idle_until = self.core.clock() + self.core.config.idle_timeout_s

    def stream_gone(self) -> None:
        if not self.streams and self.is_draining:
            self.transport.close()

    # Inside.

    def _begin(self, event: RequestReceived) -> None:
        number = event.stream_id
        if len(self.streams) >= MAX_STREAMS or self.is_draining:
            if self._spend(FRAME):
                self._quietly(lambda: self.wire.reset_stream(number, ErrorCodes.REFUSED_STREAM))
            return
        try:
            head = StreamHead(event.headers, self.via.scheme)
        except (BadHead, BadTarget) as error:
            self._refuse(event.headers, error)
            self._quietly(lambda: self.wire.reset_stream(number, ErrorCodes.PROTOCOL_ERROR))
            return
        request = ClientStream(self, number)
        request.stream.expected = None if head.length == CHUNKED else head.length
        self.streams[number] = request.stream
        self._requests.add(request)
        self._fresh.append((request, head))

    def _refuse(self, fields: Fields, error: Exception) -> None:
        """A request that cannot be understood ends its stream, and is shown."""
        headers = [(bytes(name), bytes(value)) for name, value in fields]
        named = {name: value.decode("latin-1") for name, value in headers}
        method, path = named.get(b":method", "")[:40], named.get(b":path", "")[:2048]
        now_ms = int(time.time() * 1000)
        flow = Flow(next(self.core.ids), self.peer, now_ms, method, self.via.scheme, "", path, "2", headers)
        flow.event, flow.error = "bad_request", str(error)
        self.core.begin(flow, PASS)
        self.core.finish(flow)


class ClientStream(ClientConnection):
    """One request: a client whose transport is a stream, and who asks once."""

    def __init__(self, session: ClientSession, number: int) -> None:
        super().__init__(session.core, session.peer, session.via, session.owner)
        self._tls_facts = session.tls_facts
        self._session = session
        self._is_chunked = False
        self._is_grpc = False
        self.transport = self.stream = Http2Stream(session, self, number)
        self.writer = StreamWriter(self.stream)
        # Until the whole read is met: a small body then goes up together with its head.
        self.stream.pause_reading()

    def start(self, head: StreamHead) -> None:
        stream = self.stream
        if stream.is_closing():
            self._session.request_over(self)
            return
        payload, trailers = stream.take_inbox(), stream.take_end()
        is_whole = trailers is not None
        head.frame(sum(map(len, payload)) if is_whole and not trailers else None)
        self._is_chunked = head.length == CHUNKED
        self._is_grpc = any(
            name == b"content-type" and value.startswith(b"application/grpc") for name, value in head.headers
        )
        raw = b"".join(map(self._framed, payload))
        if is_whole and self._is_chunked:
            raw += last_chunk(trailers or [])
        stream.resume_reading()
        self.deadline = self.core.clock() + self.core.config.request_timeout_s
        body: BodyReader | None = None
        if head.length:
            body = reader_of(head.length)
            try:
                body.feed(raw)
            except BadChunk as error:  # trailers that are too long
                stream.reset(ErrorCodes.PROTOCOL_ERROR, str(error))
                return
        self._start(head, head.target, body)

    def timed_out(self) -> None:
        exchange = self._exchange
        is_talk = exchange is not None and exchange.has_begun_response and not exchange.is_request_done
        if self._is_grpc or is_talk:
            # Both sides may be silent for hours: a watch, a chat. Calls of gRPC carry their own deadlines.
            self.deadline = _NEVER
        else:
            super().timed_out()

    def exchange_over(self, keeps: bool, is_request_done: bool) -> None:
        self._exchange = None
        self.deadline = _NEVER
        self._session.request_over(self)
        self.stream.close()

    # From the stream.

    def stream_data(self, data: bytes) -> None:
        if self._exchange is not None and self._body is not None:
            self._read_body(self._exchange, self._body, self._framed(data))

    def stream_ended(self, trailers: Headers) -> None:
        if self._exchange is not None and self._body is not None and self._is_chunked:
            self._read_body(self._exchange, self._body, last_chunk(trailers))

    def stream_lost(self, reason: str) -> None:
        if self._exchange is not None:
            self._exchange.client_lost(f"the client: {reason}")
        else:
            self._session.request_over(self)

    # Inside.

    def _framed(self, data: bytes) -> bytes:
        return chunk(data) if self._is_chunked else data

    def _flow(self, head: RequestHead, scheme: str, authority: str, path: str) -> Flow:
        flow = super()._flow(head, scheme, authority, path)
        assert isinstance(head, StreamHead)
        flow.request_headers = head.recorded
        return flow
