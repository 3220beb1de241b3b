"""The HTTP listener and the Unix socket of one server, started and stopped together."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from dari.core.rate_limit import ClientRateLimit
from dari.core.scopes import Grant
from dari.daemon.tcp_peer import knows_tcp_owners
from dari.log import format_event
from dari.mcp.server import Server
from dari.settings import ServeSettings
from dari.transport.bind import bind, is_loopback
from dari.transport.client_tokens import ClientTokens, TokenStore
from dari.transport.endpoint import McpEndpoint
from dari.transport.guard import HttpGuard
from dari.transport.health import HealthApp
from dari.transport.http_request import HttpRequest
from dari.transport.peer_uids import PeerCheck
from dari.transport.sessions import HttpSessions
from dari.transport.token_file import TokenFile
from dari.transport.token_watch import TokenWatch
from dari.transport.unix import UnixServer
from dari.transport.uvicorn_server import AsgiApp, UvicornServer, report_failure

_log = logging.getLogger("dari.transport")
MakePages = Callable[[HealthApp, HttpGuard], AsgiApp]
"""What answers beside `/mcp`, WebSockets too, given what answers there without it and the rules of the listener."""
FindServer = Callable[[str], Server | str | None]
"""The server of a path beside `/mcp`, the reason why there is none, or None when the path is not an MCP one."""


class Forwarder(Protocol):
    """Answers requests that were let in, somewhere else."""

    def serve(self, request: HttpRequest) -> None: ...

    def finish(self) -> None:
        """End every stream, let what runs finish."""


class McpListeners:
    """Binds before it serves, so that a taken port fails the start and nothing else."""

    def __init__(
        self,
        server: Server,
        settings: ServeSettings,
        grant: Grant,
        make_pages: MakePages | None = None,
        find_server: FindServer | None = None,
        forwarder: Forwarder | None = None,
    ) -> None:
        """`forwarder` answers in the place of the server, whose strictness still holds."""
        self._server = server
        self._find_server = find_server
        self._forwarder = forwarder
        self._sessions_of: WeakKeyDictionary[Server, HttpSessions] = WeakKeyDictionary()
        self._settings = settings
        self._grant = grant
        self._http_grant = replace(grant, may_relay_person=False)
        self._make_pages = make_pages
        self._failure: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._unix: UnixServer | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._token_watch: TokenWatch | None = None
        self.web: UvicornServer | None = None
        self.sessions = HttpSessions(server, settings.session_ttl_s)
        self.url = ""

    async def start(self) -> None:
        """Listen. What fails here leaves nothing open."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        settings = self._settings
        token = None if settings.token_path is None else TokenFile(settings.token_path)
        listeners = [] if settings.transport == "stdio" else [bind(settings.http_bind, settings.http_port)]
        hosts = (settings.http_bind, *settings.allowed_hosts)
        store = None if settings.client_tokens_path is None else TokenStore(settings.client_tokens_path)
        clients = None if store is None else ClientTokens(store, self._http_grant)
        guard = HttpGuard(token, hosts, settings.allowed_origins, PeerCheck(settings.allowed_uids), clients)
        limit = (
            None
            if settings.rate_limit is None
            else ClientRateLimit(settings.rate_limit, max(1.0, settings.rate_limit * 2))
        )
        mount = None if self._find_server is None else self._mounted
        handler = None if self._forwarder is None else self._forwarder.serve
        endpoint = McpEndpoint(
            self._server, self.sessions, guard, self._http_grant, rate_limit=limit, mount=mount, handler=handler
        )
        health = HealthApp(token, lambda: self.url)
        self.web = UvicornServer(
            endpoint,
            listeners,
            health if self._make_pages is None else self._make_pages(health, guard),
            settings.stop_grace_s,
            takes_websockets=self._make_pages is not None,
        )
        await self.web.start()
        if listeners:
            host, port = listeners[0].getsockname()[:2]
            _warn(host, settings.allowed_uids)
            self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp"
        if settings.socket_path is not None:
            anyone = HttpGuard(None, None, settings.allowed_origins)
            trusted = McpEndpoint(self._server, self.sessions, anyone, self._http_grant, mount=mount)
            unix = UnixServer(self._server, self._grant, settings.socket_path, self.web.protocol_for(trusted))
            await unix.start()
            self._unix = unix
            if unix.listener is not None:
                self.web.watch(unix.listener, str(settings.socket_path))
        self.web.on_failure(self._fail)
        if token is not None:
            self._token_watch = TokenWatch(token, clients, store, endpoint)
            report_failure(self._token_watch.start(), self._fail)

    async def failed(self) -> Exception:
        """Waits for what should not happen: the listener breaking while it serves."""
        return await asyncio.shield(self._failure)

    async def stop(self) -> None:
        """Refuse new requests, let running ones finish, end. A second call waits for the same end."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        await self._stopping

    async def _stop(self) -> None:
        if self._token_watch is not None:
            await self._token_watch.stop()
        if self._forwarder is not None:
            self._forwarder.finish()
        if self._unix is not None:
            self._unix.refuse()
        self._server.end_listening("http", "unix")
        if self._unix is not None and self.web is not None:
            await asyncio.gather(self._unix.stop(self._settings.stop_grace_s), self.web.stop())
        elif self.web is not None:
            await self.web.stop()

    def _mounted(self, path: str) -> tuple[Server, HttpSessions] | str | None:
        assert self._find_server is not None
        found = self._find_server(path)
        if not isinstance(found, Server):
            return found
        sessions = self._sessions_of.get(found)
        if sessions is None:
            sessions = self._sessions_of[found] = HttpSessions(found, self._settings.session_ttl_s)
        return found, sessions

    def _fail(self, error: Exception) -> None:
        if not self._failure.done():
            self._failure.set_result(error)


def _warn(host: str, allowed_uids: tuple[int, ...] | None) -> None:
    """What a listener lets in that its owner may not have meant."""
    if not is_loopback(host):
        _log.warning(
            format_event(
                "http",
                "exposed",
                f"--http-bind {host} lets other machines connect, and the token travels unencrypted; "
                "hint: bind to 127.0.0.1 and reach it through `ssh -L`, or give this machine's name with --allow-host",
            )
        )
    if allowed_uids is None or not knows_tcp_owners():
        why = "--allow-uid any" if allowed_uids is None else f"{sys.platform} does not tell the user of a connection"
        _log.warning(
            format_event("http", "unchecked", f"every user of this machine may connect ({why}); the token decides")
        )
