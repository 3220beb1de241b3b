"""Calls to a daemon: a connection per call, or one that is kept and renewed.

On a connection, requests go out at once and replies come back in their order.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

import msgspec
from msgspec import Raw, Struct

from dari.daemon.caller_scopes import client_of_call
from dari.daemon.errors import RECONNECT, DaemonError, ErrorCode, from_daemon_error
from dari.daemon.launch import ensure_started
from dari.daemon.paths import DaemonPaths
from dari.daemon.peer import PeerCredentials, peer_credentials
from dari.daemon.protocol import (
    HANDSHAKE,
    MAX_LINE_BYTES,
    PROTOCOL_VERSION,
    HandshakeParams,
    decode_reply,
    encode_request,
)
from dari.daemon.tokens import read_token
from dari.daemon.unix_socket import HANDSHAKE_PAUSES_S, answers, check_daemon_owner, connect_unix
from dari.errors import DariError, Denied, Failed, InvalidInput, TimedOut, Unavailable
from dari.rpc.codec import UNREADABLE
from dari.struct_types import ready

if TYPE_CHECKING:
    from dari.daemon.paths import AnyPath


class ConnectionLost(Exception):
    """The connection ended before the reply was complete."""

    def __init__(self, reply_begun: bool = False) -> None:
        super().__init__("the connection ended before the reply")
        self.reply_begun = reply_begun


class DaemonConnection(asyncio.Protocol):
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
        line = encode_request(request_id, method, params, client_of_call())
        if len(line) > MAX_LINE_BYTES:
            raise InvalidInput(f"{method} was given {len(line)} bytes, the limit is {MAX_LINE_BYTES}")
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(reply)
        self._transport.write(line)
        return decode_reply(await reply, request_id)

    async def shake_hands(self, token: str, client_type: str) -> None:
        await self.call(HANDSHAKE, HandshakeParams(PROTOCOL_VERSION, token, client_type))

    def retire(self) -> None:
        """Take no new calls, and close once the last reply has come."""
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
            self.hang_up()  # a reply without a request: the order is lost
            return
        reply = self._waiting.popleft()
        if not reply.done():
            reply.set_result(line)


async def open_connection(
    path: AnyPath, check_server: Callable[[PeerCredentials], None] | None = None
) -> DaemonConnection:
    """A connection without a handshake; OSError without a listener. `check_server` raises to refuse a listener."""
    sock = await connect_unix(path)
    try:
        check_daemon_owner(sock, path)
        if check_server is not None:
            check_server(peer_credentials(sock))
        _, channel = await asyncio.get_running_loop().create_unix_connection(DaemonConnection, sock=sock)
    except BaseException:
        sock.close()
        raise
    return channel


T = TypeVar("T")
Params = Mapping[str, object] | Struct

UNREACHABLE = "daemon unreachable"  # the wording of design 000 §5.7
DEFAULT_TIMEOUT_S = 30.0
HANDSHAKE_TIMEOUT_S = 30.0
"""Also of a call without a limit: a daemon that was stopped, or hangs, still accepts connections."""
MARGIN_S = 60.0
"""What a call gets beyond the time that it asks the daemon to wait: a daemon may have to start a program first."""
FOREVER_S = math.inf
"""The daemon knows best: the call lasts as long as the connection."""


class DaemonClient:
    """With `keep`, calls share one connection of the running loop and queue behind each other on it.

    A kept connection that was lost while idle, or whose session ended by a rotation, is replaced once
    per call. With a `command`, the first call starts a daemon that does not run. `error_types` are errors of the
    service's own, restored by their `name`. `check_server` raises to refuse the process that answers.
    """

    def __init__(
        self,
        paths: DaemonPaths,
        principal: str,
        *,
        command: Sequence[str] | None = None,
        token_path: Path | None = None,
        keep: bool = False,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        error_types: Iterable[type[DariError]] = (),
        check_server: Callable[[PeerCredentials], None] | None = None,
    ) -> None:
        self.paths = paths
        self._token_path = token_path or paths.token(principal)
        self._principal = principal
        self._keep = keep
        self._timeout_s = timeout_s
        self._command = command
        self._check_server = check_server
        self._known = {error.name: error for error in error_types}
        self._kept: DaemonConnection | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    @overload
    async def call(
        self,
        method: str,
        params: Params | None = None,
        timeout_s: float | None = None,
        *,
        alone: bool = False,
    ) -> object: ...

    @overload
    async def call(
        self,
        method: str,
        params: Params | None = None,
        timeout_s: float | None = None,
        *,
        returns: type[T],
        alone: bool = False,
    ) -> T: ...

    async def call(
        self,
        method: str,
        params: Params | None = None,
        timeout_s: float | None = None,
        *,
        returns: Any = object,
        alone: bool = False,
    ) -> Any:
        """The result of a method, as plain JSON values or as the type in `returns`.

        `alone` gives a slow call a connection of its own, so that nothing queues behind it. When the params ask the
        daemon to wait (`timeout_s`), our own limit is the longer one, whatever it was: its answer is the better one.
        """
        limit_s = max(self._timeout_s if timeout_s is None else timeout_s, _waiting_s(params) + MARGIN_S)
        try:
            async with asyncio.timeout(None if limit_s == FOREVER_S else limit_s):
                ask = self._ask_kept if self._keep and not alone else self._ask_once
                result = await ask(method, {} if params is None else params)
        except TimeoutError as error:
            hint = "give it more time, or look at the daemon's log"
            raise TimedOut(f"{method} did not answer within {limit_s:g} s", hint) from error
        except DaemonError as refusal:
            raise from_daemon_error(refusal, self._known) from refusal
        except ConnectionLost as error:
            raise Unavailable(UNREACHABLE, f"it hung up during {method}, which may have run") from error
        return _decode(method, result, returns)

    def service(self, name: str) -> RemoteService:
        """The daemon's methods below `name.` as methods: `client.service("proxy").status()`."""
        return RemoteService(self, name)

    async def close(self) -> None:
        """Close the kept connection for good; calls that still wait on it fail."""
        self._is_closed = True
        async with self._opening:
            if self._kept is not None:
                await self._kept.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask_once(self, method: str, params: Params) -> Raw:
        channel = await self._open()
        try:
            return await channel.call(method, params)
        finally:
            await channel.close()

    async def _ask_kept(self, method: str, params: Params) -> Raw:
        for is_last in (False, True):
            channel, is_new = await self._kept_channel()
            try:
                return await channel.call(method, params)
            except asyncio.CancelledError:
                # The daemon answers in order: the next request would wait for a reply that is not wanted any more.
                channel.retire()
                raise
            except ConnectionLost as lost:
                if is_last or is_new or lost.reply_begun:
                    raise
            except DaemonError as refusal:
                if is_last or refusal.ipc_code != ErrorCode.SESSION_EXPIRED:
                    raise
                channel.retire()
        raise AssertionError("the second attempt returns or raises")

    async def _kept_channel(self) -> tuple[DaemonConnection, bool]:
        async with self._opening:
            if self._is_closed:
                raise Unavailable(UNREACHABLE, "this client has been closed")
            if self._kept is not None and self._kept.is_usable:
                return self._kept, False
            self._kept = await self._open()
            return self._kept, True

    async def _open(self) -> DaemonConnection:
        for pause_s in (*(HANDSHAKE_PAUSES_S if self._command is not None else ()), None):
            channel = await self._connect()
            try:
                async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
                    await self._shake_hands(channel)
            except TimeoutError as error:
                channel.hang_up()
                hint = "it runs and hangs: look at the daemon's log, or end its process"
                what = f"the daemon on {self.paths.socket_text} did not answer in {HANDSHAKE_TIMEOUT_S:g} s"
                raise TimedOut(what, hint) from error
            except ConnectionLost as error:
                channel.hang_up()
                if pause_s is None:
                    hint = "it hung up at the handshake: it is stopping, or too many connections are open"
                    raise Unavailable(UNREACHABLE, hint) from error
                await asyncio.sleep(pause_s)
            except BaseException:
                channel.hang_up()
                raise
            else:
                return channel
        raise AssertionError("the last attempt returns or raises")

    async def _connect(self) -> DaemonConnection:
        try:
            return await open_connection(self.paths.socket_text, self._check_server)
        except OSError as error:
            if self._command is None:
                raise self._unreachable(error) from error
        try:
            await ensure_started(self.paths, self._command)
        except DariError as error:
            raise Unavailable(UNREACHABLE, f"{error.message}; {error.hint}") from error
        try:
            return await open_connection(self.paths.socket_text, self._check_server)
        except OSError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: OSError) -> Unavailable:
        hint = f"no process answers on {self.paths.socket_text} ({error.strerror}); start the daemon"
        return Unavailable(UNREACHABLE, hint)

    async def _shake_hands(self, channel: DaemonConnection) -> None:
        token = self._token()
        try:
            await channel.shake_hands(token, self._principal)
        except DaemonError as refusal:
            # A rotation may fall between reading the file and using what it held.
            renewed = self._token()
            if refusal.ipc_code != ErrorCode.AUTH_FAILED or renewed == token:
                raise
            await channel.shake_hands(renewed, self._principal)

    def _token(self) -> str:
        try:
            return read_token(self._token_path)
        except FileNotFoundError as error:
            if not answers(self.paths.socket_text):
                raise ConnectionLost from error  # it was on its way out, and took its tokens along
            raise Denied(f"cannot read the token in {self._token_path}: {error}", RECONNECT) from error
        except (OSError, UnicodeDecodeError) as error:
            raise Denied(f"cannot read the token in {self._token_path}: {error}", RECONNECT) from error


class RemoteService:
    """Attribute access by the service's own method names, with keyword arguments as params."""

    def __init__(self, client: DaemonClient, name: str) -> None:
        self._client = client
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., Awaitable[object]]:
        if method.startswith("_"):
            raise AttributeError(method)

        async def call(**params: object) -> object:
            return await self._client.call(f"{self._name}.{method}", params)

        return call


def _waiting_s(params: Params | None) -> float:
    """How long the daemon is asked to wait; less than nothing when it is not."""
    asked = params.get("timeout_s") if isinstance(params, Mapping) else getattr(params, "timeout_s", None)
    return float(asked) if isinstance(asked, int | float) else -MARGIN_S


def _decode(method: str, result: Raw, returns: Any) -> Any:
    try:
        return msgspec.json.decode(result, type=ready(Any if returns is object else returns))
    except UNREADABLE as error:
        raise Failed(f"{method} returned something unexpected: {error}", "restart the daemon") from error
