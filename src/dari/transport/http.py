"""HTTP on uvicorn: `/mcp` is answered right in the protocol class, every other path by the ASGI app.

The class below is uvicorn's own httptools protocol with `/mcp` short-circuited before a scope, a task or an
event is made; uvicorn is pinned to one minor version because that class is no documented interface.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from dari.transport.endpoint import PATH, Endpoint
from dari.transport.exchange import JSON_LENGTH, STATUS_LINES, Exchange

HEAD_TIMEOUT_S = 10.0
BODY_TIMEOUT_S = 60.0
IDLE_TIMEOUT_S = 75.0
STUCK_TIMEOUT_S = 60.0
MOST_HEAD_BYTES = 64 * 1024
MOST_HEADERS = 100
MOST_UNREAD_BYTES = 16 * 1024 * 1024
# Two of one of these and two readers may disagree about which one counts.
_SINGLE = frozenset({b"host", b"authorization", b"origin", b"content-type", b"last-event-id"})


class McpProtocol(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(self, endpoint: Endpoint, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.endpoint = endpoint
        self._active: Exchange | None = None
        self._in_head = False
        self._head_bytes = 0
        self._is_lingering = False
        self._since_s = self.loop.time()
        self._phase = HEAD_TIMEOUT_S
        self._stuck_since_s = 0.0
        self._date_of: list[tuple[bytes, bytes]] = []
        self._date = b""
        self._plain_head = b""

    # What uvicorn and the parser call

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
                self._refuse_head()

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._in_head = True
        self._head_bytes = 0
        self._since_s = self.loop.time()
        self._phase = HEAD_TIMEOUT_S

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        # RFC 9110 §5.5: white space around a value is not part of it; llhttp leaves what trails.
        value = value.strip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._phase = BODY_TIMEOUT_S
        if self.url != PATH and self.url.partition(b"?")[0] != PATH:
            self._on_asgi_headers_complete()
            return
        exchange = Exchange(self, self.parser.get_method(), dict(self.headers), self.endpoint.grant)
        if self.parser.get_http_version() == "1.0":
            exchange.is_chunked = exchange.keep_alive = False
        elif not self.parser.should_keep_alive():
            exchange.keep_alive = False
        if self.expect_100_continue:
            exchange.expects_continue = True
        if len(exchange.fields) != len(self.headers) or len(self.headers) > MOST_HEADERS:
            exchange.refusal = self._bad_headers()
        previous: RequestResponseCycle | None = self.cycle
        self.cycle = cast(RequestResponseCycle, exchange)
        if previous is None or previous.response_complete:
            self._start(exchange)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if not isinstance(exchange, Exchange):
            super().on_body(body)
        elif not exchange.response_complete:
            if not exchange.body:
                exchange.body = body
            elif isinstance(exchange.body, bytearray):
                exchange.body += body
            else:
                exchange.body = bytearray(exchange.body + body)
            if len(exchange.body) > self.endpoint.most_body_bytes:
                self._refuse(exchange, 413, f"the body is longer than {self.endpoint.most_body_bytes} bytes")

    def on_message_complete(self) -> None:
        self._phase = 0.0
        exchange = self.cycle
        if not isinstance(exchange, Exchange):
            super().on_message_complete()
            return
        exchange.is_read = True
        if self._is_lingering:
            self.transport.close()
        elif not exchange.response_complete and exchange.started_s:
            self.endpoint.serve(exchange)

    def on_response_complete(self) -> None:
        """Start what was pipelined, or wait for the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            if isinstance(cycle, Exchange):
                self._start(cycle)
                if cycle.is_read and not cycle.response_complete:
                    self.endpoint.serve(cycle)
            else:
                self._start_asgi_task(cycle, app)
        else:
            self._since_s = self.loop.time()
            self._phase = IDLE_TIMEOUT_S

    def connection_lost(self, exc: Exception | None) -> None:
        if self._active is not None:
            self.endpoint.open.discard(self._active)
            self._active.lost()
        if isinstance(self.cycle, Exchange):
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
        if self._phase and now_s - self._since_s > self._phase:
            self.transport.close()

    # What an exchange calls

    def finish(self, response: bytes, exchange: Exchange) -> None:
        """Write a whole response."""
        self.endpoint.open.discard(exchange)
        if self.transport.is_closing():
            return
        self.transport.write(response)
        self._after(exchange)

    def write_head(self, head: bytes, exchange: Exchange) -> None:
        framing = b"transfer-encoding: chunked\r\n\r\n" if exchange.is_chunked else b"connection: close\r\n\r\n"
        if not self.transport.is_closing():
            self.transport.write(head + framing)

    def write_part(self, data: bytes, exchange: Exchange) -> None:
        if self.transport.is_closing():
            return
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if exchange.is_chunked else data)
        # A client that stopped reading its events costs this much memory and no more.
        if self.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self.transport.abort()

    def end_parts(self, exchange: Exchange) -> None:
        self.endpoint.open.discard(exchange)
        if self.transport.is_closing():
            return
        if exchange.is_chunked:
            self.transport.write(b"0\r\n\r\n")
        else:
            exchange.keep_alive = False
        self._after(exchange)

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

    def _start(self, exchange: Exchange) -> None:
        exchange.started_s = self.loop.time()
        self._active = exchange
        self.endpoint.open.add(exchange)
        length = exchange.fields.get(b"content-length", b"0")
        if exchange.refusal is not None:
            self._refuse(exchange, *exchange.refusal)
        elif self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            self._refuse(exchange, 503, "too many connections")
        elif length.isdigit() and int(length[:20]) > self.endpoint.most_body_bytes:
            self._refuse(exchange, 413, f"the body is longer than {self.endpoint.most_body_bytes} bytes")
        else:
            self.endpoint.admit(exchange, self.client[0] if self.client else "unix")
            if exchange.expects_continue and not exchange.response_complete:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, exchange: Exchange, status: int, error: str) -> None:
        exchange.keep_alive = False
        exchange.refuse(status, error)

    def _bad_headers(self) -> tuple[int, str] | None:
        if len(self.headers) > MOST_HEADERS:
            return 431, f"more than {MOST_HEADERS} headers"
        seen: set[bytes] = set()
        for name, _ in self.headers:
            if name in seen and (name in _SINGLE or name.startswith(b"mcp-")):
                return 400, f"header {name.decode('latin-1')} appears more than once"
            seen.add(name)
        return None

    def _after(self, exchange: Exchange) -> None:
        if exchange.keep_alive and (exchange.is_read or self._has_no_body(exchange)):
            self.on_response_complete()
        elif exchange.is_read:
            self.transport.close()
        else:
            # The client may still be sending: closing now would reset the connection under our answer.
            exchange.keep_alive = False
            self._is_lingering = True
            self._since_s = self.loop.time()
            self._phase = HEAD_TIMEOUT_S

    def _has_no_body(self, exchange: Exchange) -> bool:
        fields = exchange.fields
        return b"transfer-encoding" not in fields and fields.get(b"content-length", b"0") == b"0"

    def _refuse_head(self) -> None:
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        )
        self.transport.close()

    def _on_asgi_headers_complete(self) -> None:
        """Give uvicorn the state that its own `on_message_begin` would have made."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"] = headers
        super().on_headers_complete()


def make_protocol(endpoint: Endpoint, config: Config, state: ServerState) -> McpProtocol:
    """A connection outside uvicorn's own listeners, e.g. one accepted on a Unix socket."""
    return McpProtocol(endpoint, config=config, server_state=state, app_state={}, _loop=asyncio.get_running_loop())
