"""A client's connection: reads requests strictly in order, one exchange at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dari.core.slices import SLICE_S
from dari.proxy.cert_page import CERT_PAGE_HOSTS
from dari.proxy.engine.body_framing import BadChunk, BodyReader, FixedBody, reader_of
from dari.proxy.engine.client_process import ConnectionOwner
from dari.proxy.engine.exchange import Exchange
from dari.proxy.engine.flow_control import PIECE_BYTES, PIPELINED, FlowControlledProtocol
from dari.proxy.engine.heads import BadHead, RequestHead, head_end, joined
from dari.proxy.engine.hooks import PASS
from dari.proxy.engine.local_response import make_refusal, status_line
from dari.proxy.engine.response_writer import Http1Writer, ResponseWriter
from dari.proxy.engine.targets import DEFAULT_PORTS, BadTarget, RequestTarget, target_of, tunnel_target
from dari.proxy.engine.tunnel import ESTABLISHED
from dari.proxy.engine.upstream import Route
from dari.proxy.flow import Flow, Tls
from dari.transport.authority import Authority

if TYPE_CHECKING:
    import asyncio

    from dari.proxy.engine.core import EngineContext

_NEVER = float("inf")


@dataclass(slots=True, frozen=True)
class Via:
    """The tunnel a client speaks through: every request goes to its far end, whatever it names."""

    scheme: str
    host: str
    port: int
    server_name: str
    sni: str | None = None
    is_multiplexed: bool = False
    """The client speaks HTTP/2 in it, and so may we at its far end."""


@lru_cache(maxsize=1024)
def _route_to(scheme: str, authority: Authority) -> Route:
    return Route(scheme, authority.host, authority.port or DEFAULT_PORTS[scheme], authority.host)


class ClientConnection(FlowControlledProtocol):
    writer: ResponseWriter
    """For one exchange after another."""

    def __init__(
        self, core: EngineContext, peer: str, via: Via | None = None, owner: ConnectionOwner | None = None
    ) -> None:
        self.core = core
        self.owner = owner
        self.peer = peer
        self.via = via
        self.deadline = _NEVER
        self.is_full = False
        """The client takes what we write more slowly than we do."""
        self._scheme = "http"
        self._route: Route | None = None
        """Where every request goes, inside a tunnel."""
        if via is not None:
            self._scheme = via.scheme
            self._route = Route(via.scheme, via.host, via.port, via.server_name, via.is_multiplexed)
        self._tls_facts: tuple[str | None, str | None, str | None] = (None, None, None)
        """SNI, version and ALPN of the client's leg."""
        self._buffer = b""
        self._body: BodyReader | None = None
        self._exchange: Exchange | None = None
        self._is_advancing = False
        self._is_lingering = False
        self._is_reading_head = False
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.writer = Http1Writer(self.transport)
        self.core.connections.add(self)
        self.deadline = self.core.clock() + self.core.config.idle_timeout_s
        session = transport.get_extra_info("ssl_object")
        if session is not None:
            sni = self.via.sni if self.via is not None else None
            self._tls_facts = sni, session.version(), session.selected_alpn_protocol()

    def data_received(self, data: bytes) -> None:
        if self._sliced or (len(data) > PIECE_BYTES and not isinstance(self._body, FixedBody)):
            self.in_slices(data, self._received)
        else:
            self._received(data)

    def _received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._exchange is None:
            if not self._is_lingering:
                self._buffer = self._buffer + data if self._buffer else data
                self._advance()
                # Between two requests only: one whose answer began early still has a body to read.
                if self.is_full and self._exchange is None:
                    self.hold(PIPELINED)
        elif self._body is not None:
            self._read_body(self._exchange, self._body, data)
        else:
            self._buffer += data
            self.hold(PIPELINED)

    def eof_received(self) -> bool:
        """A client may end its direction and still wait for the answer (`nc`, HTTP/1.0)."""
        if self.ends_later():
            return True
        self._has_ended = True
        if self._exchange is None:
            return False
        if self._body is not None:
            self._exchange.client_lost("the client closed the connection in the middle of its request")
            return False
        self.watch()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.core.connections.discard(self)
        self._has_ended = True
        if self._exchange is not None:
            self._exchange.client_lost()

    def pause_writing(self) -> None:
        self.is_full = True
        if self._exchange is not None:
            self._exchange.client_full()

    def resume_writing(self) -> None:
        self.is_full = False
        if self._exchange is not None:
            self._exchange.client_writable()
        else:
            self.free(PIPELINED)
            self._advance()

    def exchange_over(self, keeps: bool, is_request_done: bool) -> None:
        """The response is written; begin the next request, or close."""
        is_refused_tunnel = self._exchange is not None and self._exchange.head.method == "CONNECT"
        self._exchange = None
        self._body = None
        if self.transport.is_closing():
            return
        if not keeps or self.core.is_stopping or (self._has_ended and not self._buffer):
            self._close(is_request_done and not is_refused_tunnel)
            return
        self.deadline = self.core.clock() + self.core.config.idle_timeout_s
        self.free(~0 if not self.is_full else ~PIPELINED)
        if self._buffer:
            self._advance()

    def hand_over(self) -> bytes:
        """Another protocol takes the transport; what was read ahead belongs to it."""
        self.core.connections.discard(self)
        self._exchange = None
        self.free(~0)
        early, self._buffer = self._buffer + self.take_rest(), b""
        return early

    def timed_out(self) -> None:
        self.deadline = _NEVER
        if self._exchange is not None:
            self._exchange.timed_out()
        elif self._buffer:
            self._refuse(BadHead("the request's head did not arrive in time", 408), None)
        else:
            self.transport.close()

    def abort(self) -> None:
        self.transport.abort()

    # Inside.

    def _advance(self) -> None:
        # A loop and not recursion: a thousand pipelined requests can be answered at once.
        if self._is_advancing:
            return
        self._is_advancing = True
        until = 0.0
        try:
            # Nor while the client leaves its answers unread: each new one would only add to what waits for it.
            while self._buffer and self._exchange is None and not (self._is_lingering or self.is_full):
                if not self._next():
                    break
                if not self._buffer:
                    continue  # most clients send one request at a time
                now = time.perf_counter()
                until = until or now + SLICE_S
                if now >= until:
                    self.hold(PIPELINED)
                    self.core.loop.call_soon(self._advance_again)
                    return
        finally:
            self._is_advancing = False

    def _advance_again(self) -> None:
        """The next of many requests that came at once, after a turn for others."""
        if self._exchange is None and not self.transport.is_closing():
            if not self.is_full:
                self.free(PIPELINED)
            self._advance()

    def _next(self) -> bool:
        """Begin the next request. False when its head is not complete."""
        buffer = self._buffer
        if buffer[0] in b"\r\n":
            self._buffer = buffer = buffer[2:] if buffer[:2] == b"\r\n" else buffer
            if len(buffer) < 2:
                return False
        head: RequestHead | None = None
        try:
            end = head_end(buffer)
            if end < 0:
                if not self._is_reading_head:
                    # Once per head: a client that sends a byte now and then gets no more time for it.
                    self._is_reading_head = True
                    self.deadline = self.core.clock() + self.core.config.request_timeout_s
                return False
            self._is_reading_head = False
            head = RequestHead(buffer[:end])
            rest = buffer[end:]
            if head.method == "CONNECT":
                self._buffer = rest
                self._open_tunnel(head)
                return True
            target = self._target(head)
            body: BodyReader | None = None
            if head.length:
                body = reader_of(head.length)
                # Before anything goes up: a request whose framing is wrong reaches no origin.
                body.feed(rest)
                rest = body.rest
        except (BadHead, BadTarget, BadChunk) as error:
            self._refuse(error, head)
            return False
        self._buffer = rest
        if rest:
            self.hold(PIPELINED)
        self._start(head, target, body)
        return True

    def _read_body(self, exchange: Exchange, body: BodyReader, data: bytes) -> None:
        try:
            is_done = body.feed(data)
        except BadChunk as error:
            self._body = None
            exchange.upload.request_failed(str(error))
            return
        if is_done:
            self._body = None
            if body.trailers:
                exchange.flow.request_body.trailers = body.trailers
            if body.rest:
                self._buffer = body.rest
                self.hold(PIPELINED)
        else:
            self.deadline = self.core.clock() + self.core.config.request_timeout_s
        exchange.upload.request_continues(body.raw, body.payload, is_done)

    def _target(self, head: RequestHead) -> RequestTarget:
        target = target_of(head.url, self._scheme, head.authority)
        # An absolute URL inside a tunnel may repeat where the tunnel leads, and name nothing else.
        if self.via is not None and (target.authority != head.authority or target.scheme != self._scheme):
            raise BadTarget("the URL and the tunnel differ")
        return target

    def _start(self, head: RequestHead, target: RequestTarget, body: BodyReader | None) -> None:
        core = self.core
        host = target.authority.host
        flow = self._flow(head, target.scheme, target.authority.text, target.path.decode("latin-1"))
        route = self._route or _route_to(target.scheme, target.authority)
        decision = core.rules.decide(flow)
        core.begin(flow, decision)
        self._exchange = exchange = Exchange(self, head, target, route, flow, decision)
        raw: bytes = b""
        payload: Sequence[bytes] = ()
        if body is not None:
            raw, payload = body.raw, body.payload
            if body.is_complete:
                flow.request_body.trailers = body.trailers or None
                body = None
        self._body = body
        is_done = body is None
        if host in CERT_PAGE_HOSTS and target.scheme == "http":
            exchange.upload.note_request(payload, is_done)
            exchange.answer(core.cert_page.answer(head.method, target.path), "cert_portal")
            return
        exchange.upload.begin(raw, payload, is_done)

    def _flow(self, head: RequestHead, scheme: str, authority: str, path: str) -> Flow:
        now_ms = int(time.time() * 1000)
        flow = Flow(
            next(self.core.ids), self.peer, now_ms, head.method, scheme, authority, path, head.version, head.headers
        )
        if self.owner is not None:
            self.owner.sign(flow)
        if scheme == "https":
            flow.tls = Tls(*self._tls_facts)
        return flow

    def _open_tunnel(self, head: RequestHead) -> None:
        """CONNECT: decrypt what follows, or pass it on unread."""
        from dari.proxy.engine.sniffer import ProtocolSniffer, prepare

        core = self.core
        authority = tunnel_target(head.url)
        if self.via is not None or head.length:
            raise BadHead("CONNECT inside a tunnel, or with a body")
        assert authority.port is not None
        flow = self._flow(head, "https", authority.text, "")
        decision = core.rules.decide(flow)
        is_decrypted = prepare(core, flow, decision)
        is_read = is_decrypted or (decision.reads_plain and authority.port != DEFAULT_PORTS["https"])
        if is_read and decision.block_status is None and decision.fault is None:
            gateway = ProtocolSniffer(
                core, self.peer, authority.host, authority.port, flow, decrypts=is_decrypted, owner=self.owner
            )
            self.transport.write(ESTABLISHED)
            gateway.open(self.transport, self.hand_over())
            return
        core.begin(flow, decision)
        route = Route("https", authority.host, authority.port, authority.host)
        self._exchange = exchange = Exchange(self, head, RequestTarget("https", authority, b""), route, flow, decision)
        exchange.open_tunnel()

    def _refuse(self, error: Exception, head: RequestHead | None) -> None:
        """Answer a request that cannot be understood; nothing after it can be, either."""
        status = error.status if isinstance(error, BadHead) else 400
        line = self._buffer.partition(b"\r\n")[0][:2048].decode("latin-1")
        words = line.split(" ")
        flow = Flow(next(self.core.ids), self.peer, int(time.time() * 1000), words[0][:40], self._scheme, "", "")
        flow.target = " ".join(words[1:2])
        flow.event = "bad_request"
        flow.error = str(error)
        if head is not None:
            flow.request_headers = head.headers
        self._buffer = b""
        answer = make_refusal(status, str(error))
        flow.status = status
        flow.response_headers = [(b"Content-Length", b"%d" % len(answer.body)), (b"Connection", b"close")]
        self.core.begin(flow, PASS)
        self.transport.write(joined(status_line(status), [*answer.headers, *flow.response_headers]) + answer.body)
        self.core.finish(flow)
        self._close(is_request_done=False)

    def _close(self, is_request_done: bool) -> None:
        """Close so that the client gets to read the response: unread input would turn our FIN into a RST."""
        if is_request_done or self._has_ended:
            self.transport.close()
            return
        self._is_lingering = True
        self._buffer = b""
        self.deadline = self.core.clock() + self.core.config.linger_s
        self.free(~0)
        if self.transport.can_write_eof():
            self.transport.write_eof()
