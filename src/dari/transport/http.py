"""HTTP on uvicorn: `/mcp` and what is mounted are answered right in the protocol class, the rest by the ASGI app.

The class below is uvicorn's own httptools protocol with `/mcp` short-circuited before a scope, a task or an
event is made; uvicorn is pinned to one minor version because that class is not a documented interface.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from dari.core.slices import Sliced, pieces
from dari.rpc.codec import encode
from dari.transport.endpoint import PATH, McpEndpoint
from dari.transport.http_limits import MAX_HEAD_BYTES, MAX_HEADERS, Refusal, check_length, join_headers
from dari.transport.http_request import JSON_LENGTH, STATUS_LINES, HttpRequest

HEAD_TIMEOUT_S = 10.0
BODY_TIMEOUT_S = 60.0
IDLE_TIMEOUT_S = 75.0
STUCK_TIMEOUT_S = 60.0
PIECE_BYTES = 4 * 1024
"""Parsed at once; a piece holds some thirty requests at most."""
MAX_UNREAD_BYTES = 16 * 1024 * 1024
_OFFER = frozenset({b"connection", b"upgrade", b"http2-settings"})


class McpProtocol(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(self, endpoint: McpEndpoint, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.endpoint = endpoint
        self._active: HttpRequest | RequestResponseCycle | None = None
        self._pieces: Sliced[bytes] = Sliced(self._received, self._pause, self._resume)
        self._is_going_on = False
        self._in_head = False
        self._head_is_new = False
        # Of the head that is being read: what it has at most and at least, and the size of the chunk in hand.
        self._head_most_bytes = 0
        self._head_least_bytes = 0
        self._chunk_bytes = 0
        self._bare_bytes = 0
        """Behind the head, since the last part of a body: extensions of chunks, or trailers."""
        self._is_lingering = False
        self._is_deaf = False
        self._is_offered_upgrade = False
        self._since_s = self.loop.time()
        self._phase = HEAD_TIMEOUT_S
        self._stuck_since_s = 0.0
        self._date_of: list[tuple[bytes, bytes]] = []
        self._date = b""
        self._plain_head = b""
        self._peer_refusal: Refusal | None = None

    # What uvicorn and the parser call

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Who connects is looked at once, not with every request; what a stranger asks is not looked at."""
        super().connection_made(transport)
        peers = self.endpoint.guard.peers
        if peers is not None and self.server is not None and self.server[1] is not None:
            own = (self.server[0], self.server[1])
            self._peer_refusal = (403, "the peer is gone") if self.client is None else peers.refusal(self.client, own)

    def data_received(self, data: bytes) -> None:
        if len(data) <= PIECE_BYTES and not self._pieces:
            self._received(data)
        else:
            # Thousands of chunks or pipelined requests may be in it: others get their turn in between.
            self._pieces.take(pieces(data, PIECE_BYTES))

    def _received(self, data: bytes) -> None:
        if self._is_deaf or self.transport.is_closing():
            return
        self._chunk_bytes = len(data)
        self._parse(data)
        if self._in_head:
            self._head_most_bytes += len(data)
            # The chunk in which a head begins may hold a whole body before it.
            self._head_least_bytes += 0 if self._head_is_new else len(data)
            self._head_is_new = False
            if self._head_least_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse_head()
        elif self._phase:
            self._bare_bytes += len(data)
            if self._bare_bytes > MAX_HEAD_BYTES:
                self.transport.close()

    def _pause(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def _resume(self) -> None:
        if not self.transport.is_closing() and not self.flow.read_paused:
            self.transport.resume_reading()

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self._in_head = self._head_is_new = True
        self._head_most_bytes = self._head_least_bytes = self._bare_bytes = 0
        self._since_s = self.loop.time()
        self._phase = HEAD_TIMEOUT_S

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: nothing in it is of use, and a body may have any number
        # RFC 9110 §5.5: white space around a value is not part of it; llhttp leaves what trails.
        self.headers.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._phase = BODY_TIMEOUT_S
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._is_offered_upgrade = True
            return
        refusal = self._peer_refusal
        if len(self.headers) > MAX_HEADERS or self._head_most_bytes + self._chunk_bytes > MAX_HEAD_BYTES:
            refusal = refusal or check_length(self.url, self.headers)
        endpoint, absence = self.endpoint, ""
        if refusal is None and self.url != PATH:
            found = endpoint.at(self.url.partition(b"?")[0], dict(self.headers))
            if found is None:
                self._on_asgi_headers_complete()
                return
            endpoint, absence = found
        fields = dict(self.headers)
        request = HttpRequest(self, endpoint, self.parser.get_method(), fields)
        if absence:
            request.absence = absence
        if b"connection" in fields or not self.parser.should_keep_alive():
            self._set_persistence(request)
        if fields.get(b"expect", b"").lower() == b"100-continue":
            request.expects_continue = True
        if len(request.fields) != len(self.headers):
            request.fields, duplicate = join_headers(self.headers)
            refusal = refusal or duplicate
        if refusal is not None:
            request.refusal = refusal
        previous: RequestResponseCycle | None = self.cycle
        self.cycle = cast(RequestResponseCycle, request)
        if self.transport.is_closing():
            request.response_complete = True
        elif (previous is None or previous.response_complete) and not self.flow.write_paused:
            self._start(request)
        else:
            # Before its turn, or before the client has read what it asked for earlier.
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        self._bare_bytes = 0
        request = self.cycle
        if not isinstance(request, HttpRequest):
            super().on_body(body)
        elif not request.response_complete:
            if not request.body:
                request.body = body
            elif isinstance(request.body, bytearray):
                request.body += body
            else:
                request.body = bytearray(request.body + body)
            if len(request.body) > request.endpoint.most_body_bytes:
                request.refusal = _too_long(request)
                if request.started_s:
                    self._refuse(request, *request.refusal)

    def on_message_complete(self) -> None:
        if self._is_offered_upgrade:
            return
        request = self.cycle
        if not request.response_complete:
            self._phase = 0.0
        if not isinstance(request, HttpRequest):
            super().on_message_complete()
            return
        request.is_read = True
        if self._is_lingering:
            self.transport.close()
        elif request.response_complete:
            self.on_response_complete()
        elif request.started_s:
            request.endpoint.serve(request)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if not self._in_head and self.cycle.response_complete:
            self._since_s = self.loop.time()
            self._phase = IDLE_TIMEOUT_S
        if self.pipeline or self.flow.read_paused:
            self._go_on()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._go_on()

    def send_400_response(self, msg: str) -> None:
        """The bytes make no sense from here on: what was asked before them is answered, then it is over."""
        active = self._active
        if self._is_lingering or self.transport.is_closing():
            self.transport.close()
        elif active is None or (active.response_complete and not self._is_reading_body):
            super().send_400_response(msg)
        elif isinstance(active, HttpRequest) and not active.is_read:
            self._refuse(active, 400, msg)
            self.transport.close()
        else:
            active.keep_alive = False
            self._is_deaf = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._pieces.clear()
        active = self._active
        if isinstance(active, HttpRequest):
            active.endpoint.open.discard(active)
            active.lost()
        elif active is not None:
            active.disconnected = True
            active.message_event.set()
        self.pipeline.clear()
        if isinstance(self.cycle, HttpRequest):
            self.cycle = None
        super().connection_lost(exc)

    def tick(self, now_s: float) -> None:
        """Once a second: end connections that are too slow to ask, too slow to read, or idle for long."""
        if self.flow.write_paused:
            self._stuck_since_s = self._stuck_since_s or now_s
            if now_s - self._stuck_since_s > STUCK_TIMEOUT_S:
                self.transport.abort()
        else:
            self._stuck_since_s = 0.0
        if self.flow.read_paused:
            # It is we who do not read.
            self._since_s = now_s
        if self._phase and now_s - self._since_s > self._phase:
            self.transport.close()

    def _set_persistence(self, request: HttpRequest) -> None:
        """Only a head that says so, or one of HTTP/1.0, gets here: asking for the version is not free."""
        if self.parser.get_http_version() == "1.0":
            request.is_chunked = request.keep_alive = False
        elif not self.parser.should_keep_alive():
            request.keep_alive = False

    # What a request calls

    def finish(self, response: bytes, request: HttpRequest) -> None:
        """Write a whole response."""
        request.endpoint.open.discard(request)
        if self.transport.is_closing():
            return
        self.transport.write(response)
        self._after(request)

    def write_head(self, head: bytes, request: HttpRequest) -> None:
        if not self.transport.is_closing():
            self.transport.write(head + (b"transfer-encoding: chunked\r\n\r\n" if request.is_chunked else b"\r\n"))

    def write_part(self, data: bytes, request: HttpRequest) -> None:
        if self.transport.is_closing():
            return
        # A client that stopped reading its events costs this much memory and one event, and no more.
        if self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.transport.abort()
        else:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if request.is_chunked else data)

    def end_parts(self, request: HttpRequest) -> None:
        request.endpoint.open.discard(request)
        if self.transport.is_closing():
            return
        if request.is_chunked:
            self.transport.write(b"0\r\n\r\n")
        self._after(request)

    async def drained(self) -> None:
        if self.flow.write_paused:
            await self.flow.drain()

    def date_header(self) -> bytes:
        self.plain_head()
        return self._date

    def plain_head(self) -> bytes:
        """The head of a JSON answer up to its length, made once a second, when the date changes."""
        headers = self.server_state.default_headers
        if headers is not self._date_of:
            self._date_of = headers
            self._date = b"".join(b"%b: %b\r\n" % pair for pair in headers)
            self._plain_head = STATUS_LINES[200] + self._date + JSON_LENGTH
        return self._plain_head

    # Private

    @property
    def _is_reading_body(self) -> bool:
        return isinstance(self._active, HttpRequest) and not self._active.is_read

    def _start(self, request: HttpRequest) -> None:
        request.started_s = self.loop.time()
        self._active = request
        request.endpoint.open.add(request)
        length = request.fields.get(b"content-length", b"0")
        if request.refusal is not None:
            self._refuse(request, *request.refusal)
        elif self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            self._refuse(request, 503, "too many connections")
        elif length.isdigit() and int(length[:20]) > request.endpoint.most_body_bytes:
            self._refuse(request, *_too_long(request))
        elif request.expects_continue:
            self._admit_before_body(request)
        else:
            request.endpoint.admit(request, self.client[0] if self.client else "unix")

    def _admit_before_body(self, request: HttpRequest) -> None:
        keep_alive, request.keep_alive = request.keep_alive, False
        # A refused client may or may not send the body: nobody could tell where its next request begins.
        request.endpoint.admit(request, self.client[0] if self.client else "unix")
        if not request.response_complete:
            request.keep_alive = keep_alive
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    def _go_on(self) -> None:
        """Start what was pipelined, in a loop: a thousand requests may be answered at once."""
        if self._is_going_on:
            return
        self._is_going_on = True
        while self.pipeline and self._is_free():
            cycle, app = self.pipeline.pop()
            if not isinstance(cycle, HttpRequest):
                self._start_asgi_task(cycle, app)
                continue
            self._start(cycle)
            if cycle.is_read and not cycle.response_complete:
                cycle.endpoint.serve(cycle)
        self._is_going_on = False
        if not self.pipeline and not self.flow.write_paused and not self.transport.is_closing():
            self.flow.resume_reading()

    def _is_free(self) -> bool:
        is_answered = self._active is None or self._active.response_complete
        return is_answered and not self.flow.write_paused and not self.transport.is_closing()

    def _refuse(self, request: HttpRequest, status: int, error: str) -> None:
        request.keep_alive = False
        request.refuse(status, error)

    def _after(self, request: HttpRequest) -> None:
        if request.is_read:
            if request.keep_alive:
                self.on_response_complete()
            else:
                self.transport.close()
        elif not request.keep_alive:
            self._linger()
        # Else the rest of the body is read and dropped; the end of the message goes on from there.

    def _linger(self) -> None:
        """The client may still be sending: closing now would reset the connection under our answer."""
        self._is_lingering = True
        self._since_s = self.loop.time()
        self._phase = HEAD_TIMEOUT_S
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _refuse_head(self) -> None:
        self._is_deaf = True
        if self._is_free():
            body = encode({"error": f"the head is longer than {MAX_HEAD_BYTES} bytes"})
            head = STATUS_LINES[431] + self.date_header() + b"connection: close\r\n"
            self.transport.write(b"%b%b%d\r\n\r\n%b" % (head, JSON_LENGTH, len(body), body))
            self._linger()
        else:
            self.transport.close()

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self._is_offered_upgrade and self._takes_websocket():
                self.handle_websocket_upgrade()
            elif self._is_offered_upgrade:
                self._decline_upgrade(data[offer.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def _takes_websocket(self) -> bool:
        """Only where pages are served, from a peer that may connect, and as the first thing on its connection."""
        if self.ws_protocol_class is None or self.client is None or self._peer_refusal is not None:
            return False
        if self._active is not None or self._get_upgrade() != b"websocket":
            return False
        return self.endpoint.at(self.url.partition(b"?")[0], {}) is None

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over, with the state that uvicorn's own `on_message_begin` would have made."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url, self.headers = url, headers
        self.scope["headers"] = headers
        self.scope["method"] = self.parser.get_method().decode("ascii")
        super().handle_websocket_upgrade()

    def _decline_upgrade(self, rest: bytes) -> None:
        """Serve an offer to upgrade (Java's client makes one, always) as the HTTP/1.1 request that it is.

        The parser believes that what follows the head is another protocol, so it reads the head again without
        the offer; uvicorn loses the body here (uvicorn issue 2722).
        """
        self._is_offered_upgrade = False
        kept = b"".join(b"%b: %b\r\n" % pair for pair in self.headers if pair[0] not in _OFFER)
        self._parse(b"%b %b HTTP/1.1\r\n%b\r\n%b" % (self.parser.get_method(), self.url, kept, rest))

    def _on_asgi_headers_complete(self) -> None:
        """Give uvicorn the state that its own `on_message_begin` would have made."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url, self.headers = url, headers
        self.expect_100_continue = any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in headers
        )
        self.scope["headers"] = headers
        super().on_headers_complete()


def _too_long(request: HttpRequest) -> tuple[int, str]:
    return 413, f"the body is longer than {request.endpoint.most_body_bytes} bytes"


def make_protocol(endpoint: McpEndpoint, config: Config, state: ServerState) -> McpProtocol:
    """A connection outside uvicorn's own listeners, e.g. one accepted on a Unix socket."""
    return McpProtocol(endpoint, config=config, server_state=state, app_state={}, _loop=asyncio.get_running_loop())
