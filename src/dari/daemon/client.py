"""Calls to a daemon: a connection per call, or one that is kept and renewed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, overload

import msgspec
from msgspec import Raw, Struct

from dari.daemon.client_connection import ClientConnection, ConnectionLost, open_connection
from dari.daemon.errors import RECONNECT, DaemonError, ErrorCode, from_daemon_error
from dari.daemon.launch import ensure_started
from dari.daemon.paths import DaemonPaths
from dari.daemon.peer import PeerCredentials
from dari.daemon.tokens import read_token
from dari.errors import DariError, Denied, Failed, TimedOut, Unavailable
from dari.rpc.codec import UNREADABLE

T = TypeVar("T")
Params = Mapping[str, object] | Struct

UNREACHABLE = "daemon unreachable"  # the wording of design 000 §5.7
DEFAULT_TIMEOUT_S = 30.0
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
        self._kept: ClientConnection | None = None
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
                # The daemon answers in order: whoever came next would wait for a reply that nobody wants.
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

    async def _kept_channel(self) -> tuple[ClientConnection, bool]:
        async with self._opening:
            if self._is_closed:
                raise Unavailable(UNREACHABLE, "this client has been closed")
            if self._kept is not None and self._kept.is_usable:
                return self._kept, False
            self._kept = await self._open()
            return self._kept, True

    async def _open(self) -> ClientConnection:
        channel = await self._connect()
        try:
            await self._shake_hands(channel)
        except ConnectionLost as error:
            hint = "it hung up at the handshake: it is stopping, or too many connections are open"
            raise Unavailable(UNREACHABLE, hint) from error
        except BaseException:
            channel.hang_up()
            raise
        return channel

    async def _connect(self) -> ClientConnection:
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
        hint = f"nobody answers on {self.paths.socket_text} ({error.strerror}); start the daemon"
        return Unavailable(UNREACHABLE, hint)

    async def _shake_hands(self, channel: ClientConnection) -> None:
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
        return msgspec.json.decode(result, type=Any if returns is object else returns)
    except UNREADABLE as error:
        raise Failed(f"{method} returned something unexpected: {error}", "restart the daemon") from error
