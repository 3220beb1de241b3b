"""A daemon: methods behind a Unix socket, one per run directory, for callers of our own uid with a token.

On a connection, lines come in and replies go out strictly in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Self

from msgspec import Raw, Struct

from dari.daemon.errors import DaemonError, ErrorCode
from dari.daemon.lifetime import Lifetime, run_daemon
from dari.daemon.listener import Listener
from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.methods import Method, method_table
from dari.daemon.paths import DaemonPaths
from dari.daemon.peer import ConnectedSocket, PeerCredentials, peer_credentials
from dari.daemon.protocol import MAX_LINE_BYTES, PROTOCOL_VERSION, encode_error
from dari.daemon.session import (
    CallerGone,
    DaemonSession,
    Identify,
    OnRefused,
    SessionAccess,
    ignore_refusal,
    prove_nothing,
)
from dari.daemon.tokens import DEFAULT_PRINCIPALS, Principal, Tokens
from dari.daemon.unix_socket import answers, is_hung_up
from dari.errors import Conflict, Failed, Unavailable
from dari.os_errors import from_os_error
from dari.paths import own_dir, private_dir
from dari.version import VERSION

# What is read ahead of a call that ends with its caller: so many lines, and about as many bytes as one line
# may have.
MAX_LINES_AHEAD = 64
HANG_UP_LOOK_S = 1.0
"""Between two looks for a hang-up where nothing is read any more, so that no end of the stream is heard."""


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
            if not running.done():
                raise CallerGone
            return await running
        finally:
            running.cancel()
            hang_up.cancel()
            await asyncio.gather(running, hang_up, return_exceptions=True)

    async def _hang_up(self) -> None:
        """Return when the caller is gone; keep what arrives before. One that only ended its side is still there."""
        try:
            while len(self._ahead) < MAX_LINES_AHEAD and self._ahead_bytes() < self._limits.max_line_bytes:
                line = await self._read_line()
                if line is None:
                    break
                self._ahead.append(line)
        except asyncio.LimitOverrunError:
            pass  # the line stays in the buffer; the next read meets it again
        except OSError:
            return
        while not is_hung_up(self._sock):  # noqa: ASYNC110 (no event tells it)
            await asyncio.sleep(HANG_UP_LOOK_S)

    def _ahead_bytes(self) -> int:
        return sum(len(line) for line in self._ahead)

    def _too_long(self) -> DaemonError:
        return DaemonError(ErrorCode.INVALID_PARAMS, f"a line may have at most {self._limits.max_line_bytes} bytes")

    async def _close(self) -> None:
        try:
            self._writer.close()
            async with asyncio.timeout(self._limits.write_timeout_s):
                await self._writer.wait_closed()
        except (TimeoutError, OSError):
            pass
        finally:
            self._writer.transport.abort()


logger = logging.getLogger("dari.daemon")

# How long a starting daemon waits for the lock of one that is on its way out.
LOCK_TIMEOUT_S = 3.0


async def _nothing() -> None:
    pass


class DaemonServer:
    """`await daemon.serve()` runs until its lifetime ends; `async with` runs for a block.

    `on_stop` ends what the methods drive, within the grace period and before the next daemon may start.
    """

    def __init__(
        self,
        paths: DaemonPaths,
        methods: Iterable[Method],
        principals: Sequence[Principal] = DEFAULT_PRINCIPALS,
        *,
        version: str = VERSION,
        limits: DaemonLimits | None = None,
        on_stop: Callable[[], Awaitable[None]] = _nothing,
        peer_credentials: Callable[[ConnectedSocket], PeerCredentials] = peer_credentials,
        identify: Identify = prove_nothing,
        lifetime: Lifetime | None = None,
        on_refused: OnRefused = ignore_refusal,
    ) -> None:
        """`on_refused` is called for every refused call of a method that only a person may use."""
        self.paths = paths
        self.lifetime = lifetime or Lifetime()
        self._name = paths.name
        self._limits = limits or DaemonLimits()
        self._on_stop = on_stop
        self._peer_credentials = peer_credentials
        self._tokens = Tokens(self.paths.run_dir, principals)
        table = method_table((*_system_methods(version, self._tokens, self.lifetime.stop), *methods))
        self._access = SessionAccess(paths.name, table, self._tokens, identify, on_refused)
        self._connections: dict[asyncio.Task[None], ServerConnection] = {}
        self._listener: Listener | None = None
        self._held = ExitStack()

    async def serve(self) -> None:
        """Run until `system.shutdown`, a signal, or another end of the daemon's lifetime."""
        await run_daemon(self, self.lifetime)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Take the run directory, write the tokens, then listen; a Conflict names who has it already."""
        try:
            await self._take_place()
        except OSError as error:
            refused = from_os_error(error)
            if refused is not None:
                raise Failed(f"{self._name} cannot start: {refused.message}", refused.hint) from error
            raise Failed(f"{self._name} cannot start: {error}", "check the disk and the directory") from error
        logger.info("daemon=%s event=listening socket=%s", self._name, self.paths.socket)

    async def stop(self) -> None:
        """Refuse new callers, let running calls finish, end the service, and clear the run directory."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        try:
            async with asyncio.timeout(self._limits.grace_s):
                await self._finish_connections()
                await self._on_stop()
        except TimeoutError:
            logger.warning("daemon=%s event=stop_timeout grace_s=%g", self._name, self._limits.grace_s)
        finally:
            self._held.close()
        logger.info("daemon=%s event=stopped", self._name)

    @property
    def connections(self) -> int:
        """How many callers are connected."""
        return len(self._connections)

    async def _take_place(self) -> None:
        with ExitStack() as held:
            private_dir(self.paths.run_dir)
            own_dir(self.paths.socket.parent)
            held.callback((await self._take_lock()).release)
            listener = Listener(self.paths.socket)
            held.callback(listener.close)
            held.callback(self._tokens.remove)
            self._tokens.write()
            listener.listen(self._accept, self._lost_listener)
            self._listener, self._held = listener, held.pop_all()

    async def _take_lock(self) -> FileLock:
        lock = FileLock(self.paths.lock)
        if not await lock.acquire(LOCK_TIMEOUT_S, give_up=lambda: answers(self.paths.socket_text)):
            raise Conflict(
                f"{self._name} already serves {self.paths.socket} (pid {lock_holder(lock.path)})",
                f"stop it first; it holds {lock.path}",
            )
        return lock

    async def _finish_connections(self) -> None:
        for connection in self._connections.values():
            connection.finish()
        if self._connections:
            await asyncio.wait(self._connections, timeout=self._limits.grace_s / 2)
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=self._limits.grace_s / 4)

    def _accept(self, sock: socket.socket) -> None:
        try:
            peer = self._peer_credentials(sock)
        except OSError:
            peer = None
        if peer is None or peer.uid != os.geteuid():
            logger.warning("daemon=%s event=foreign_peer uid=%s", self._name, peer and peer.uid)
            sock.close()
        elif len(self._connections) >= self._limits.max_connections and not self._evicts():
            self._turn_away(sock)
        else:
            connection = ServerConnection(self._access, peer, sock, self._limits)
            task = asyncio.get_running_loop().create_task(connection.run())
            self._connections[task] = connection
            task.add_done_callback(self._forget)

    def _lost_listener(self, error: OSError) -> None:
        """No client can reach it any more: better no daemon than one that only seems to run."""
        what = f"{self._name} lost its listener on {self.paths.socket}: {error.strerror}"
        self.lifetime.stop(Failed(what, "start it again"))

    def _evicts(self) -> bool:
        """End the caller that was silent longest; one that has not even said hello goes before the others."""
        idle = [one for one in self._connections.values() if one.idle_s(self._limits.evict_idle_s) is not None]
        if not idle:
            return False
        max(idle, key=lambda one: (not one.is_established, one.idle_s(self._limits.evict_idle_s) or 0.0)).finish()
        return True

    def _turn_away(self, sock: socket.socket) -> None:
        """The buffer of a new socket takes a short line at once."""
        message = f"{self._limits.max_connections} connections are open"
        refusal = DaemonError(ErrorCode.STATE_ERROR, message, "close some, or try again later", Unavailable.name)
        with suppress(OSError), sock:
            sock.send(encode_error(Raw(), refusal))

    def _forget(self, task: asyncio.Task[None]) -> None:
        if self._connections.pop(task).is_established:
            self.lifetime.touch()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("daemon=%s event=fatal", self._name, exc_info=error)


def _system_methods(version: str, tokens: Tokens, shut_down: Callable[[], None]) -> tuple[Method, ...]:
    """`system.ping`, `system.version`, `system.rotate_token` and `system.shutdown`."""

    async def ping(_: dict[str, object]) -> object:
        return {"pong": True}

    async def engine(_: dict[str, object]) -> object:
        return {"engine": version, "protocol": PROTOCOL_VERSION}

    async def rotate_token(_: dict[str, object]) -> object:
        tokens.rotate()
        return {"rotated": True, "reconnect_required": True}

    async def shutdown(_: dict[str, object]) -> object:
        shut_down()
        return {"status": "shutting_down"}

    return (
        Method("system.ping", "read", ping),
        Method("system.version", "read", engine),
        Method("system.rotate_token", "admin", rotate_token),
        Method("system.shutdown", "control", shutdown),
    )
