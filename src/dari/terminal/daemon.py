"""`cruxd`: the panes behind Unix sockets, MCP on one and the commands of design 002 §6 on the other.

Panes live on when clients leave. The daemon ends on request, or when its last pane has ended and no
client was connected for ten minutes (`--idle`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dari.daemon.client import DaemonClient
from dari.daemon.lifetime import Lifetime, run_daemon
from dari.terminal.paths import NAME, CruxPaths

if TYPE_CHECKING:
    from dari.core.audit.writer import RecordWriter
    from dari.terminal.multiplexer import Change, Multiplexer
    from dari.terminal.take_over import Typist

DEFAULT_IDLE_S = 600.0
STOP_S = 2.0
MAX_TYPED_CHARS = 4000
_log = logging.getLogger("dari.terminal")


@dataclass(slots=True, frozen=True)
class CruxOptions:
    http_port: int | None = None
    """None: no HTTP; 0: any port."""
    idle_s: float = DEFAULT_IDLE_S
    rate: float | None = None
    """Calls a second and client; None for the usual one, 0 for no limit."""
    announce: Callable[[str, str], None] | None = None
    """Called with the URL and the token file once HTTP listens."""
    allowed_uids: tuple[int, ...] | None = ()
    """Users that may connect over TCP besides ours; None: every user."""


async def serve(paths: CruxPaths, options: CruxOptions | None = None) -> None:
    """Run until `crux:server/kill`, SIGTERM, SIGINT, or until it is idle."""
    options = options or CruxOptions()
    lifetime = Lifetime(options.idle_s)
    await run_daemon(_terminal(paths, options, lifetime), lifetime)


@asynccontextmanager
async def _terminal(paths: CruxPaths, options: CruxOptions, lifetime: Lifetime) -> AsyncIterator[None]:
    """The panes with both sockets open."""
    from dari.core.audit.spool import process_spool
    from dari.core.scopes import MCP_GRANT
    from dari.daemon.server import DaemonServer
    from dari.settings import ServeSettings
    from dari.terminal.multiplexer import Multiplexer
    from dari.terminal.out_of_band import load_variables
    from dari.terminal.policy.config import load_security
    from dari.terminal.service import daemon_methods, local_service
    from dari.terminal.tools.toolkit import build_server
    from dari.transport.server import McpListeners

    environ = {**os.environ, **({} if not paths.config_text else {"CRUX_CONFIG": paths.config_text})}
    security = load_security(environ)
    async with AsyncExitStack() as held:
        multiplexer = await held.enter_async_context(Multiplexer(security, paths.mcp_socket, paths.shells))
        multiplexer.set_variables(load_variables(environ))
        if sys.stdin is not None and sys.stdin.isatty():
            multiplexer.adopt_environment(os.environ)
        multiplexer.hide(paths.run_dir, paths.state_dir)
        multiplexer.own_sockets(paths.mcp_socket, paths.socket)
        service = local_service(
            multiplexer, paths.sessions, lifetime.stop, lambda: len(server.sessions) + daemon.connections
        )
        daemon = DaemonServer(
            paths, daemon_methods(service), lifetime=lifetime, on_refused=service.approvals.report_refusal
        )
        spool = process_spool()
        held.callback(spool.close)
        held.callback(record_typed(multiplexer, spool))
        server = build_server(service, multiplexer, options.rate, spool)
        await held.enter_async_context(daemon)
        held.callback(server.close)
        settings = ServeSettings(
            transport="stdio" if options.http_port is None else "http",
            http_port=options.http_port,
            token_path=None if options.http_port is None else paths.http_token,
            socket_path=paths.mcp_socket,
            allowed_uids=options.allowed_uids,
            stop_grace_s=STOP_S,
        )
        listeners = McpListeners(server, settings, MCP_GRANT)
        held.push_async_callback(listeners.stop)
        await listeners.start()
        if listeners.url and options.announce is not None:
            options.announce(listeners.url, str(paths.http_token))
        where = (NAME, paths.mcp_socket, listeners.url, os.getpid())
        _log.info("daemon=%s event=serving mcp=%s url=%s pid=%d", *where)
        lifetime.ends_with(listeners.failed)
        lifetime.is_busy = lambda: bool(
            multiplexer.live_panes or server.sessions or daemon.connections or len(server.calls)
        )
        warming = asyncio.create_task(multiplexer.warm())
        yield
        await warming
        # Panes first: a client that waits for one of them hears that it ended.
        await multiplexer.end_all()


def name_typist(typist: Typist) -> str:
    """A person as `ann@console`; an agent as other records have it, since it may call itself `ann@console`."""
    if typist.kind == "agent":
        return f"mcp@{typist.name}:{typist.place}" if typist.place else f"mcp:{typist.name}"
    return f"{typist.name}@{typist.place}" if typist.place else typist.name


def record_typed(multiplexer: Multiplexer, log: RecordWriter) -> Callable[[], None]:
    """Record the lines that people enter in panes; calls of agents are recorded as calls. Returns what stops it."""
    import msgspec

    from dari.terminal.multiplexer import PaneChanged
    from dari.terminal.panes.events import CommandStarted

    def hear(change: Change) -> None:
        if not (isinstance(change, PaneChanged) and isinstance(change.event, CommandStarted)):
            return
        typists = multiplexer.panes[change.pane_id].commands.find(change.event.command_id).typists
        if any(each.kind == "person" for each in typists):
            typed = {"pane_id": change.pane_id, "command": change.event.command[:MAX_TYPED_CHARS]}
            who = " + ".join(map(name_typist, typists))
            log.call("crux", "typed", "ok", part="crux", who=who, arguments=msgspec.json.encode(typed))

    return multiplexer.changes.subscribe(hear, CommandStarted)


def cruxd_client(paths: CruxPaths, principal: str, *, starts: bool = True, keep: bool = True) -> DaemonClient:
    """Calls to cruxd; with `starts`, the first call starts it."""
    return DaemonClient(paths, principal, command=paths.command() if starts else None, keep=keep)
