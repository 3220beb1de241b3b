"""HTTP/1.1 connections to one server: one request at a time on each, kept while they live, opened when all are busy."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import httptools

from dari.core.slices import Sliced, pieces
from dari.daemon.unix_socket import connect_unix
from dari.errors import TimedOut, Unavailable
from dari.mcp.client.errors import NotSent
from dari.transport.client.address import Address
from dari.transport.client.lines import keep_alive, read_small

Headers = dict[bytes, bytes]
MAX_HEADER_BYTES = 64 * 1024
PIECE_BYTES = 4 * 1024
"""Parsed at once; a piece holds some 700 chunks or events at most."""


class ResponseSink(Protocol):
    """Takes one response. Exactly one of `ended` and `broken` comes last."""

    def head(self, status: int, headers: Headers) -> None: ...

    def data(self, part: bytes) -> None: ...

    def ended(self) -> None: ...

    def broken(self, error: Unavailable, *, is_untouched: bool) -> None:
        """`is_untouched`: a kept connection ended before a byte of the response, so the server had hung up before."""


class HttpConnection(asyncio.Protocol):
    """Calls `on_free` when the next request may be sent, `on_gone` when there will be none."""

    def __init__(self, on_free: Callable[[HttpConnection], None], on_gone: Callable[[HttpConnection], None]) -> None:
        self.lost = asyncio.Event()
        self.idle_since_s = 0.0
        self.keep_alive_s = float("inf")
        self._on_free = on_free
        self._on_gone = on_gone
        self._taker: ResponseSink | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: Sliced[bytes] = Sliced(self._received, self._pause, self._resume)
        self._served = 0
        self._headers: Headers = {}
        self._begin()

    def send(self, taker: ResponseSink, request: bytes) -> None:
        """Only while it is free."""
        self._taker = taker
        self._begin()
        assert self._transport is not None
        self._transport.write(request)

    def abort(self) -> None:
        """Close the connection. The reader of the response gets nothing more."""
        self._taker = None
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        read_small(transport)
        keep_alive(transport)

    def data_received(self, data: bytes) -> None:
        if len(data) <= PIECE_BYTES and not self._pieces:
            self._received(data)
        else:
            # Thousands of chunks or events may be in it: others get their turn in between.
            self._pieces.take(pieces(data, PIECE_BYTES))

    def _received(self, data: bytes) -> None:
        if self._taker is None:
            self.abort()  # nobody asked: the connection cannot be trusted with another request
            return
        self._has_bytes = True
        if self._header_bytes > MAX_HEADER_BYTES:
            self._break("the response's headers are too long")
            return
        self._header_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._break("the server wants to speak another protocol")
        except httptools.HttpParserError as error:
            self._break(f"the response is not HTTP: {error}")

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        for piece in self._pieces.rest():
            if self._taker is not None:
                self._received(piece)
        self._transport = None
        taker, self._taker = self._taker, None
        if taker is not None:
            if self._has_head and self._ends_with_connection and exc is None:
                taker.ended()
            else:
                reason = f": {exc}" if exc is not None else ""
                error = Unavailable(f"the server closed the connection{reason}", "the request may have run")
                taker.broken(error, is_untouched=self._served > 0 and not self._has_bytes)
        self._on_gone(self)
        self.lost.set()

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_head:
            return  # a trailer: nothing in it is of use, and a response may have any number
        key, value = name.lower(), value.strip()
        self._headers[key] = self._headers[key] + b", " + value if key in self._headers else value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self._headers = {}
            return
        self._has_head = True
        headers = self._headers
        self._ends_with_connection = b"content-length" not in headers and b"transfer-encoding" not in headers
        if self._taker is not None:
            self._taker.head(status, headers)

    def on_body(self, part: bytes) -> None:
        self._header_bytes = 0
        if self._taker is not None:
            self._taker.data(part)

    def on_message_complete(self) -> None:
        if not self._has_head or self._taker is None:
            return
        taker, self._taker = self._taker, None
        self._served += 1
        # What was read beyond the response would be taken for the next one.
        if self._parser.should_keep_alive() and self.is_usable and not self._pieces:
            self.keep_alive_s = _keep_alive_s(self._headers)
            self._on_free(self)
        elif self._transport is not None:
            self._transport.close()
        taker.ended()

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _begin(self) -> None:
        self._headers = {}
        self._header_bytes = 0  # since the response, or the last part of its body, began
        self._has_bytes = False
        self._has_head = False
        self._ends_with_connection = False

    def _break(self, reason: str) -> None:
        taker = self._taker
        self.abort()
        if taker is not None:
            taker.broken(Unavailable(reason, "check that the URL is that of an MCP server"), is_untouched=False)


def _keep_alive_s(headers: Headers) -> float:
    """How long the server keeps an idle connection, where it says so; a second less, to be on the safe side."""
    for part in headers.get(b"keep-alive", b"").split(b","):
        name, _, value = part.strip().partition(b"=")
        if name.strip().lower() == b"timeout" and value.strip().isdigit() and len(value) < 9:
            return max(0.0, int(value) - 1.0)
    return float("inf")


MAX_CONNECTIONS = 256
MAX_URGENT_CONNECTIONS = 64
"""Beyond those, for messages that a busy call may wait for."""
MAX_IDLE_S = 60.0


class HttpPool:
    """`idle` costs nothing and may have none; `take` waits for one, or connects."""

    def __init__(
        self,
        address: Address,
        *,
        connect_timeout_s: float,
        ssl_context: ssl.SSLContext | None = None,
        keeps_alive: bool = True,
    ) -> None:
        self._address = address
        self._connect_timeout_s = connect_timeout_s
        self._ssl_context = ssl_context
        self._keeps_alive = keeps_alive
        self._dialling = 0
        self._idle: deque[HttpConnection] = deque()
        self._open: set[HttpConnection] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._loop = asyncio.get_running_loop()

    def idle(self) -> HttpConnection | None:
        """The connection that was used last: it is the least likely to have been dropped."""
        now_s = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and now_s - connection.idle_since_s < min(connection.keep_alive_s, MAX_IDLE_S):
                return connection
            connection.abort()
        return None

    async def take(self, *, is_urgent: bool = False, is_fresh: bool = False) -> HttpConnection:
        """A connection to send on. An urgent one has some beyond the limit: a busy call may wait for its message."""
        while True:
            connection = None if is_fresh else self.idle()
            if connection is not None:
                return connection
            most = MAX_CONNECTIONS + MAX_URGENT_CONNECTIONS if is_urgent else MAX_CONNECTIONS
            if len(self._open) + self._dialling < most:
                return await self._connect()
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self._wake()
                raise

    def give_back(self, connection: HttpConnection) -> None:
        """It was taken, but not used."""
        if connection.is_usable:
            self._freed(connection)

    async def close(self) -> None:
        self._idle.clear()
        for connection in list(self._open):
            connection.abort()
        for connection in list(self._open):
            await connection.lost.wait()

    async def _connect(self) -> HttpConnection:
        address = self._address
        connection = HttpConnection(self._freed, self._gone)
        self._dialling += 1
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await self._dial(connection)
        except TimeoutError:
            late = f"{address.host_header} did not accept a connection within {self._connect_timeout_s:g} s"
            raise TimedOut(late, "check that the server runs and can be reached") from None
        except ssl.SSLCertVerificationError as error:
            hint = "trust its issuer, or give an ssl_context of your own"
            raise NotSent(f"the certificate of {address.host} is not valid: {error.verify_message}", hint) from None
        except ssl.SSLError as error:
            raise NotSent(
                f"no TLS connection to {address.host_header}: {_reason(error)}",
                "check that it speaks https there; a server without TLS has an http:// URL",
            ) from None
        except OSError as error:
            where = address.socket_path or address.host_header
            raise NotSent(f"cannot connect to {where}: {error.strerror or error}", "is the server running?") from None
        finally:
            self._dialling -= 1
            if not connection.is_usable:
                self._wake()
        self._open.add(connection)
        return connection

    async def _dial(self, connection: HttpConnection) -> None:
        address, loop = self._address, self._loop
        context = self._tls() if address.is_tls else None
        name = address.host if address.is_tls else None
        if address.socket_path is not None:
            sock = await connect_unix(address.socket_path)
            await loop.create_unix_connection(lambda: connection, sock=sock, ssl=context, server_hostname=name)
        else:
            await loop.create_connection(
                lambda: connection, address.host, address.port, ssl=context, server_hostname=name
            )

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
            self._ssl_context.set_alpn_protocols(["http/1.1"])
        return self._ssl_context

    def _freed(self, connection: HttpConnection) -> None:
        if not self._keeps_alive:
            connection.abort()  # whatever the server thinks of it
            return
        connection.idle_since_s = self._loop.time()
        self._idle.append(connection)
        self._wake()

    def _gone(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


def _reason(error: ssl.SSLError) -> str:
    """`WRONG_VERSION_NUMBER` as words; the rest of the message names lines of C."""
    return (error.reason or error.strerror or "it failed").replace("_", " ").lower()
