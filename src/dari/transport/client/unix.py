"""A server behind a Unix socket: newline-delimited JSON, as on a pipe."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dari.daemon.unix_socket import connect_unix
from dari.errors import TimedOut, Unavailable
from dari.mcp.client.channel import Inbox
from dari.mcp.client.lines import MAX_LINE_BYTES
from dari.transport.client.lines import LineChannel, read_small

CONNECT_TIMEOUT_S = 10.0


class UnixChannel(LineChannel):
    """Connects when it is opened."""

    def __init__(self, path: Path, *, most_bytes: int = MAX_LINE_BYTES) -> None:
        super().__init__(most_bytes)
        self._path = path
        self._transport: asyncio.Transport | None = None

    async def open(self, inbox: Inbox) -> None:
        self._reset()
        self._lost = asyncio.Event()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                sock = await connect_unix(self._path)
            transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)
        except TimeoutError:
            raise TimedOut(f"{self._path} took no connection within {CONNECT_TIMEOUT_S:g} s", "it is busy") from None
        except OSError as error:
            hint = f"{error.strerror or error}; is the server running?"
            raise Unavailable(f"no server answers on {self._path}", hint) from None
        self._adopt(transport, inbox)

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        self.inbox = None
        self._flush()
        transport.close()
        try:
            async with asyncio.timeout(2):
                await self._lost.wait()
        except TimeoutError:
            transport.abort()
            await self._lost.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._sliced and self.inbox is not None:
            self._sliced.then(lambda: self.connection_lost(exc))
            return
        self._lost.set()
        self.resume_writing()
        if self.inbox is not None:
            self.inbox.lost(self._farewell(exc))

    def _adopt(self, transport: asyncio.Transport, inbox: Inbox) -> None:
        self._writer = self._reader = self._transport = transport
        read_small(transport)
        self.inbox = inbox

    def _farewell(self, exc: Exception | None) -> Unavailable:
        """What those are told who wait when the other side is gone."""
        reason = f" ({exc})" if exc is not None else ""
        return Unavailable(f"the server on {self._path} hung up{reason}", "open the client again")
