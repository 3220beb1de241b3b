"""`cruxd`: the panes behind Unix sockets, MCP on one and the commands of design 002 §6 on the other.

Panes live on when clients leave. The daemon ends
when it is told to, or when its last pane has ended and nobody was connected for ten minutes (`--idle`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from dari.daemon.client import DaemonClient
from dari.terminal.paths import NAME, CruxPaths

DEFAULT_IDLE_S = 600.0
STOP_S = 2.0
_LOOK_S = 1.0
_log = logging.getLogger("dari.terminal")


@dataclass(slots=True, frozen=True)
class CruxOptions:
    http_port: int | None = None
    """None: no HTTP; 0: any port."""
    idle_s: float = DEFAULT_IDLE_S
    rate: float | None = None
    """Calls a second and client; None for the usual one, 0 for no limit."""
    announce: Callable[[str, str], None] | None = None
    """Told the URL and the token file once HTTP listens."""
    allowed_uids: tuple[int, ...] | None = ()
    """Users that may connect over TCP besides ours; None: every user."""


async def serve(paths: CruxPaths, options: CruxOptions | None = None) -> None:
    """Run until `crux:server/kill`, SIGTERM, SIGINT, or nobody needs it any more."""
    from dari.core.scopes import MCP_GRANT
    from dari.daemon.server import DaemonServer
    from dari.settings import ServeSettings
    from dari.terminal.multiplexer import Multiplexer
    from dari.terminal.out_of_band import load_variables
    from dari.terminal.policy.config import load_security
    from dari.terminal.service import daemon_methods, local_service
    from dari.terminal.tools.server import build_server
    from dari.transport.server import McpListeners

    options = options or CruxOptions()
    environ = {**os.environ, **({} if not paths.config_text else {"CRUX_CONFIG": paths.config_text})}
    security = load_security(environ)
    stopping = asyncio.Event()
    async with AsyncExitStack() as held:
        multiplexer = await held.enter_async_context(Multiplexer(security, paths.mcp_socket, paths.shells))
        multiplexer.set_variables(load_variables(environ))
        if sys.stdin is not None and sys.stdin.isatty():
            multiplexer.adopt_environment(os.environ)
        multiplexer.own_sockets(paths.mcp_socket, paths.socket)
        clients: list[Callable[[], int]] = []
        service = local_service(multiplexer, paths.sessions, stopping.set, lambda: sum(count() for count in clients))
        daemon = DaemonServer(paths, daemon_methods(service))
        await held.enter_async_context(daemon)
        server = build_server(service, multiplexer, options.rate)
        held.callback(server.close)
        settings = ServeSettings(
            transport="stdio" if options.http_port is None else "http",
            http_port=options.http_port,
            token_path=None if options.http_port is None else paths.http_token,
            socket_path=paths.mcp_socket,
            allowed_uids=options.allowed_uids,
            stop_grace_s=STOP_S,
        )
        hub = McpListeners(server, settings, MCP_GRANT)
        held.push_async_callback(hub.stop)
        await hub.start()
        clients += (lambda: len(server.sessions), lambda: daemon.connections)
        if hub.url and options.announce is not None:
            options.announce(hub.url, str(paths.http_token))
        _log.info("daemon=%s event=serving mcp=%s url=%s pid=%d", NAME, paths.mcp_socket, hub.url, os.getpid())
        warming = asyncio.create_task(multiplexer.warm())

        def is_busy() -> bool:
            return bool(multiplexer.live_panes or server.sessions or daemon.connections or len(server.calls))

        await _until_over((stopping.wait(), daemon.asked_to_stop(), hub.failed(), _idle(is_busy, options.idle_s)))
        await warming
        # Panes first: whoever waits for one of them is told that it ended.
        await multiplexer.end_all()


async def _until_over(ends: Sequence[Coroutine[Any, Any, object]]) -> None:
    """Return with the first of these, or a signal."""
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    waits = [asyncio.create_task(end) for end in (*ends, signalled.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        for waiting in waits:
            waiting.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _idle(is_busy: Callable[[], bool], idle_s: float) -> None:
    """Return once nobody needed it for that long; never when it is 0."""
    loop = asyncio.get_running_loop()
    since = loop.time()
    while True:
        await asyncio.sleep(min(_LOOK_S, idle_s / 4) if idle_s else 3600)
        if is_busy() or not idle_s:
            since = loop.time()
        elif loop.time() - since >= idle_s:
            _log.info("daemon=%s event=idle", NAME)
            return


def cruxd_client(paths: CruxPaths, principal: str, *, starts: bool = True, keep: bool = True) -> DaemonClient:
    """Calls to cruxd; with `starts`, the first call starts it."""
    return DaemonClient(paths, principal, command=paths.command() if starts else None, keep=keep)
