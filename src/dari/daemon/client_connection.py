"""A client's end of one connection: requests go out at once, replies come back in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from msgspec import Raw

from dari.daemon.peer import PeerCredentials, peer_credentials
from dari.daemon.protocol import (
    HANDSHAKE,
    MAX_LINE_BYTES,
    PROTOCOL_VERSION,
    HandshakeParams,
    decode_reply,
    encode_request,
)
from dari.daemon.unix_socket import check_daemon_owner, connect_unix
from dari.errors import InvalidInput

if TYPE_CHECKING:
    from dari.daemon.paths import AnyPath


class ConnectionLost(Exception):
    """The connection ended before the reply was complete."""

    def __init__(self, reply_begun: bool = False) -> None:
        super().__init__("the connection ended before the reply")
        self.reply_begun = reply_begun


class ClientConnection(asyncio.Protocol):
    """A cancelled call stays in the queue until its reply has come, so the others keep theirs."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[asyncio.Future[bytes]] = deque()
        self._buffer = bytearray()
        self._scanned_bytes = 0
        self._last_id = 0
        self._is_retired = False
        self._writable = asyncio.Event()
        self._closed = asyncio.Event()

    @property
    def is_usable(self) -> bool:
        return self._transport is not None and not self._is_retired and not self._transport.is_closing()

    async def call(self, method: str, params: object) -> Raw:
        """Send one request and wait for its reply; a refusal is raised as an IpcError."""
        await self._writable.wait()
        if self._transport is None or self._transport.is_closing():
            raise ConnectionLost
        self._last_id += 1
        request_id = self._last_id
        line = encode_request(request_id, method, params)
        if len(line) > MAX_LINE_BYTES:
            raise InvalidInput(f"{method} was given {len(line)} bytes, the limit is {MAX_LINE_BYTES}")
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(reply)
        self._transport.write(line)
        return decode_reply(await reply, request_id)

    async def shake_hands(self, token: str, client_type: str) -> None:
        await self.call(HANDSHAKE, HandshakeParams(PROTOCOL_VERSION, token, client_type))

    def retire(self) -> None:
        """Take no new calls, and hang up once nobody waits for a reply any more."""
        self._is_retired = True
        if all(reply.done() for reply in self._waiting):
            self.hang_up()

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Hang up and wait until the descriptor is free."""
        self.hang_up()
        await self._closed.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._scanned_bytes)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._scanned_bytes = 0
            self._deliver(line)
        self._scanned_bytes = len(self._buffer)
        if self._scanned_bytes > MAX_LINE_BYTES:
            self.hang_up()
        elif self._is_retired:
            self.retire()

    def connection_lost(self, exc: Exception | None) -> None:
        begun = bool(self._buffer)
        for reply in self._waiting:
            if not reply.done():
                reply.set_exception(ConnectionLost(begun))
            begun = False
        self._waiting.clear()
        self._writable.set()
        self._closed.set()

    def _deliver(self, line: bytes) -> None:
        if not self._waiting:
            self.hang_up()  # a reply that nobody asked for: the order is lost
            return
        reply = self._waiting.popleft()
        if not reply.done():
            reply.set_result(line)


async def open_connection(
    path: AnyPath, check_server: Callable[[PeerCredentials], None] | None = None
) -> ClientConnection:
    """A connection without a handshake; OSError when nobody answers. `check_server` raises to refuse who does."""
    sock = await connect_unix(path)
    try:
        check_daemon_owner(sock, path)
        if check_server is not None:
            check_server(peer_credentials(sock))
        _, channel = await asyncio.get_running_loop().create_unix_connection(ClientConnection, sock=sock)
    except BaseException:
        sock.close()
        raise
    return channel
