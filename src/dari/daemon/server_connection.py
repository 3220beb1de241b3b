"""One connection: lines in, replies out, strictly in order."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Coroutine
from typing import Any

from msgspec import Raw, Struct

from dari.daemon.errors import DaemonError, ErrorCode
from dari.daemon.peer import PeerCredentials
from dari.daemon.protocol import MAX_LINE_BYTES, encode_error
from dari.daemon.session import CallerGone, DaemonSession, SessionAccess
from dari.daemon.unix_socket import is_hung_up

# What is read ahead of a call that ends with its caller: so many lines, and about as many bytes as one line
# may have. Beyond that nobody watches for a hang-up.
MAX_LINES_AHEAD = 64


class DaemonLimits(Struct, frozen=True):
    """`grace_s` is what a shutdown may take in all; running calls get half of it."""

    max_line_bytes: int = MAX_LINE_BYTES
    max_connections: int = 256
    handshake_timeout_s: float = 10.0
    write_timeout_s: float = 30.0
    evict_idle_s: float = 60.0
    """When all places are taken, a caller that was silent this long gives its own up."""
    grace_s: float = 2.0


class ServerConnection:
    """`run()` is its task; it owns the socket from the first moment."""

    def __init__(self, access: SessionAccess, peer: PeerCredentials, sock: socket.socket, limits: DaemonLimits) -> None:
        self._session = DaemonSession(access, peer, self._while_connected)
        self._sock = sock
        self._limits = limits
        self._ahead: deque[bytes] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_reading = False
        self._is_finishing = False
        self._active_s = asyncio.get_running_loop().time()

    @property
    def is_established(self) -> bool:
        return self._session.is_established

    def idle_s(self, least_s: float) -> float | None:
        """How long it has been silent; None while it works, or was heard from lately after its hello."""
        silent_s = asyncio.get_running_loop().time() - self._active_s
        if self._is_finishing or not self._is_reading or (self.is_established and silent_s < least_s):
            return None
        return silent_s

    async def run(self) -> None:
        """Serve until either side has had enough."""
        self._task = asyncio.current_task()
        self._reader, self._writer = await asyncio.open_unix_connection(
            sock=self._sock, limit=self._limits.max_line_bytes
        )
        try:
            await self._converse()
        except (TimeoutError, OSError, CallerGone):
            pass  # the caller is silent, deaf or gone
        finally:
            await self._close()

    def finish(self) -> None:
        """End after the call that is running, or at once."""
        self._is_finishing = True
        if self._is_reading and self._task is not None:
            self._task.cancel()

    async def _converse(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._limits.handshake_timeout_s
        while not self._is_finishing:
            async with asyncio.timeout_at(None if self._session.is_established else deadline):
                self._is_reading = True
                try:
                    line = await self._next_line()
                except asyncio.LimitOverrunError:
                    await self._send(encode_error(Raw(), self._too_long()))
                    return
                finally:
                    self._is_reading = False
            if line is None:
                return
            self._active_s = asyncio.get_running_loop().time()
            if not line.isspace():
                await self._send(await self._session.answer(line))

    async def _next_line(self) -> bytes | None:
        return self._ahead.popleft() if self._ahead else await self._read_line()

    async def _read_line(self) -> bytes | None:
        """The next line, or None at the end; the last one may lack its newline."""
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            return end.partial or None

    async def _send(self, line: bytes) -> None:
        self._writer.write(line)
        async with asyncio.timeout(self._limits.write_timeout_s):
            await self._writer.drain()

    async def _while_connected(self, work: Coroutine[Any, Any, object]) -> object:
        """Run the work, and cancel it when the caller hangs up first."""
        running = asyncio.create_task(work)
        hang_up = asyncio.create_task(self._hang_up())
        try:
            await asyncio.wait((running, hang_up), return_when=asyncio.FIRST_COMPLETED)
            if not running.done() and hang_up.result():
                raise CallerGone
            return await running
        finally:
            running.cancel()
            hang_up.cancel()
            await asyncio.gather(running, hang_up, return_exceptions=True)

    async def _hang_up(self) -> bool:
        """Keep what arrives for later; True when the caller is gone, False when it only ended its side."""
        try:
            while len(self._ahead) < MAX_LINES_AHEAD and self._ahead_bytes() < self._limits.max_line_bytes:
                line = await self._read_line()
                if line is None:
                    return is_hung_up(self._sock)
                self._ahead.append(line)
        except asyncio.LimitOverrunError:
            pass  # the line stays in the buffer; the next read meets it again
        except OSError:
            return True
        return False

    def _ahead_bytes(self) -> int:
        return sum(len(line) for line in self._ahead)

    def _too_long(self) -> DaemonError:
        return DaemonError(ErrorCode.INVALID_PARAMS, f"a line may have {self._limits.max_line_bytes} bytes")

    async def _close(self) -> None:
        try:
            self._writer.close()
            async with asyncio.timeout(self._limits.write_timeout_s):
                await self._writer.wait_closed()
        except (TimeoutError, OSError):
            pass
        finally:
            self._writer.transport.abort()
