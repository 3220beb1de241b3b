"""Connections to one server: kept while they live, opened when all are busy."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque

from dari.daemon.unix_socket import connect_unix
from dari.errors import TimedOut
from dari.mcp.client.errors import NotSent
from dari.transport.client.address import Address
from dari.transport.client.http_connection import HttpConnection

MAX_CONNECTIONS = 256
MAX_IDLE_S = 60.0


class HttpPool:
    """`idle` costs nothing and may have none; `take` waits for one, or connects."""

    def __init__(
        self,
        address: Address,
        *,
        connect_timeout_s: float,
        ssl_context: ssl.SSLContext | None = None,
        most: int = MAX_CONNECTIONS,
        keeps_alive: bool = True,
    ) -> None:
        self._address = address
        self._connect_timeout_s = connect_timeout_s
        self._ssl_context = ssl_context
        self._most = most
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
        """A connection to send on. An urgent one ignores the limit: a busy call may wait for just that message."""
        while True:
            connection = None if is_fresh else self.idle()
            if connection is not None:
                return connection
            if is_urgent or len(self._open) + self._dialling < self._most:
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
