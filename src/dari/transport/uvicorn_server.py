"""The HTTP server: listeners, the one-second tick, the graceful stop."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from uvicorn import Config
from uvicorn import Server as Uvicorn

from dari.daemon.listener import is_listening
from dari.errors import Unavailable
from dari.log import format_event
from dari.transport.endpoint import McpEndpoint
from dari.transport.health import Scope, Send
from dari.transport.http import McpProtocol, make_protocol
from dari.transport.sessions import SWEEP_S

STOP_GRACE_S = 5.0
LAST_WORDS_S = 0.2
POLL_S = 0.005
MAX_CONNECTIONS = 2000
MAX_MESSAGE_BYTES = 32 * 1024 * 1024

AsgiApp = Callable[[Scope, Any, Send], Awaitable[None]]

_log = logging.getLogger("dari.transport")


class ListenerClosed(Unavailable):
    """A listening socket was closed or shut down while it served."""


class UvicornServer:
    """Runs the endpoint on sockets that are bound already."""

    def __init__(
        self,
        endpoint: McpEndpoint,
        listeners: list[socket.socket],
        app: AsgiApp,
        stop_grace_s: float = STOP_GRACE_S,
        *,
        takes_websockets: bool = False,
    ) -> None:
        """`app` answers what is not MCP, WebSockets too if it takes any."""
        self.endpoint = endpoint
        self._stop_grace_s = stop_grace_s
        self._listeners = listeners
        self._watched: dict[socket.socket, str] = {}
        self._endpoints = [endpoint]
        config = Config(
            app,
            http=partial(McpProtocol, endpoint),  # type: ignore[arg-type]
            ws=_make_websocket if takes_websockets else "none",  # type: ignore[arg-type]
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
        )
        self._uvicorn = Uvicorn(config)
        self._ticker: asyncio.Task[None] | None = None
        self._swept_s = 0.0

    @property
    def connection_count(self) -> int:
        return len(self._uvicorn.server_state.connections)

    def protocol_for(self, endpoint: McpEndpoint) -> Callable[[], asyncio.Protocol]:
        """A factory of connections for another endpoint that shares this server's limits and shutdown."""
        if endpoint not in self._endpoints:
            self._endpoints.append(endpoint)
        return lambda: make_protocol(endpoint, self._uvicorn.config, self._uvicorn.server_state)

    def watch(self, listener: socket.socket, name: str) -> None:
        """Fail when nobody can connect there any more: a server that only seems to run is worse than none."""
        self._watched[listener] = name

    async def start(self) -> None:
        for listener in self._listeners:
            host, port = listener.getsockname()[:2]
            self.watch(listener, f"{host}:{port}")
        self._uvicorn.config.load()
        self._uvicorn.lifespan = self._uvicorn.config.lifespan_class(self._uvicorn.config)
        await self._uvicorn.startup(sockets=self._listeners)
        await self._uvicorn.on_tick(0)
        self._swept_s = asyncio.get_running_loop().time()
        self._ticker = asyncio.create_task(self._tick_every_second())

    def on_failure(self, report: Callable[[Exception], None]) -> None:
        """Call back when the server fails while it runs."""
        assert self._ticker is not None
        report_failure(self._ticker, report)

    async def stop(self) -> None:
        """Refuse new requests, end the streams, let running calls finish for at most five seconds."""
        for endpoint in self._all():
            endpoint.is_stopping = True
        for server in getattr(self._uvicorn, "servers", []):
            server.close()
        for listener in self._listeners:
            listener.close()
        for endpoint in self._all():
            endpoint.server.end_listening("http")
            endpoint.sessions.end_streams()
        for connection in list(self._uvicorn.server_state.connections):
            connection.shutdown()
        await self._until_idle(self._stop_grace_s)
        # Running requests get their end before their connections are closed.
        for endpoint in self._all():
            endpoint.sessions.close()
            endpoint.give_up("the server is stopping")
        for task in self._uvicorn.server_state.tasks:
            task.cancel()
        await self._until_idle(LAST_WORDS_S)
        for connection in list(self._uvicorn.server_state.connections):
            connection.transport.abort()
        if self._ticker is not None:
            self._ticker.cancel()

    def _all(self) -> list[McpEndpoint]:
        return [one for endpoint in self._endpoints for one in (endpoint, *endpoint.mounted)]

    async def _until_idle(self, timeout_s: float) -> None:
        state, loop = self._uvicorn.server_state, asyncio.get_running_loop()
        until_s = loop.time() + timeout_s
        while (state.connections or state.tasks) and loop.time() < until_s:  # noqa: ASYNC110 (plain sets of uvicorn's)
            await asyncio.sleep(POLL_S)

    async def tick(self, now_s: float) -> None:
        """What is due now: the date, slow and idle connections, comments for silent streams, idle sessions."""
        self._require_listening()
        await self._uvicorn.on_tick(0)
        for connection in list(self._uvicorn.server_state.connections):
            if isinstance(connection, McpProtocol):
                connection.tick(now_s)
        for endpoint in self._all():
            endpoint.keep_awake(now_s)
        if now_s - self._swept_s > SWEEP_S:
            self._swept_s = now_s
            expired = sum(sessions.sweep() for sessions in {endpoint.sessions for endpoint in self._all()})
            _log.debug(format_event("http", "sweep", f"expired={expired}"))

    def _require_listening(self) -> None:
        if self.endpoint.is_stopping:
            return
        for listener, name in self._watched.items():
            if not is_listening(listener):
                raise ListenerClosed(
                    f"the listener is gone: {name} takes no more connections", "start the server again"
                )

    async def _tick_every_second(self) -> None:
        while True:
            await asyncio.sleep(1)
            await self.tick(asyncio.get_running_loop().time())


def report_failure(task: asyncio.Task[None], report: Callable[[Exception], None]) -> None:
    """Call back when a task that should run on fails."""

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            report(error)

    task.add_done_callback(ended)


def _make_websocket(**uvicorn: Any) -> asyncio.Protocol:
    """The library is imported when the first page connects."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    return WebSocketsSansIOProtocol(**uvicorn)
