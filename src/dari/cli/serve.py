"""`dari up` and `dari mcp`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dari import app, log
from dari.cli.ports import client_command, warn_port_moved
from dari.errors import Conflict
from dari.runtime import run_to_exit, tune_gc_for_serving
from dari.settings import ServeSettings, Transport
from dari.transport.bind import is_loopback
from dari.transport.client_tokens import tokens_path
from dari.transport.health import hub_on
from dari.transport.peer_uids import read_uids
from dari.transport.supervisor import TransportSupervisor

if TYPE_CHECKING:
    from dari.cli.hub.daemon import Hosted
    from dari.cli.mcp.http import HubForwarder
    from dari.cli.mcp.hub import NoHub
    from dari.console.console import WebConsole
    from dari.mcp.server import Server

PREPARE_AFTER_S = 0.2


def run_up(arguments: argparse.Namespace) -> int:
    """The hub in the foreground."""
    log.configure_logging(arguments.log)

    async def main() -> int:
        socket = Path(arguments.socket).absolute() if arguments.socket else app.socket_path()
        settings = replace(_settings(arguments, "http", socket), client_tokens_path=tokens_path())
        _refuse_second(socket)
        try:
            if settings.has_servers:
                return await _host(settings)
            return await _serve_alone(settings)
        except Conflict:
            _refuse_second(app.socket_path())  # one that was started at the same time, or that holds the servers
            raise

    return run_to_exit(main)


def run_mcp(arguments: argparse.Namespace) -> int:
    """`dari mcp` with HTTP: the listener and its rules are here, the hub answers. Stdin and stdout alone are a pipe."""
    from dari.cli.mcp.http import HubForwarder, serve_stdio_in_thread
    from dari.cli.mcp.hub import Hub, HubRefused
    from dari.cli.mcp.main import hub_options, make_log, run_pipe
    from dari.cli.mcp.pipe import Pipe

    log.configure_logging(arguments.log)
    settings = _settings(arguments, arguments.transport, None)
    options = hub_options(
        settings.profile, settings.server, settings.mode, settings.protocol, no_servers=not settings.has_servers
    )
    hub, write_log = Hub(options), make_log(arguments.log)

    def report(refused: HubRefused) -> None:
        write_log("error", f"fatal {refused.message}; {refused.hint}")

    async def main() -> int:
        forwarder = HubForwarder(hub)
        supervisor = TransportSupervisor(
            app.empty_server(settings),
            settings,
            announce=partial(warn_port_moved, "dari", settings),
            forwarder=forwarder,
            stdio=lambda ended: serve_stdio_in_thread(Pipe(hub, write_log), ended, report),
        )
        opening = asyncio.create_task(_open_or_stop(forwarder, supervisor))
        try:
            code = await supervisor.run()
            if opening.done():
                opening.result()
            return code
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            forwarder.close()

    if arguments.transport == "stdio":
        return run_pipe(hub, arguments.protocol, arguments.log)
    return run_to_exit(main)


async def _open_or_stop(forwarder: HubForwarder, supervisor: TransportSupervisor) -> None:
    """Runs with the listener bound: a port in use is reported before any hub is started."""
    try:
        await forwarder.open()
    except BaseException:
        supervisor.stop()
        raise


def serve_without_hub(none: NoHub, *, is_strict: bool, level: str) -> int:
    """Our own tools, in this process: on a disk that cannot be written, and inside a server of somebody's."""
    from dari.core.audit.spool import process_spool
    from dari.core.scopes import MCP_GRANT
    from dari.transport.stdio import serve_stdio

    log.configure_logging(level)
    why = f"{none.message}; {none.hint}" if none.hint else none.message
    logger = logging.getLogger("dari.transport")
    logger.warning(log.format_event("stdio", "no_hub", f"only our own tools: {why}"))
    settings = ServeSettings(protocol="strict" if is_strict else "negotiate")

    async def main() -> int:
        with closing(process_spool()) as spool:
            await serve_stdio(app.build(settings, spool, Path.cwd()), MCP_GRANT, head=none.unserved)
        logger.info(log.format_event("stdio", "eof"))
        return 0

    return run_to_exit(main)


def _refuse_second(socket: Path) -> None:
    """A hub that runs already is the one to use: say where it is."""
    served = hub_on(socket)
    if served is None or served.pid == os.getpid():
        return
    place = f"at {served.url}" if served.url else f"on {socket}"
    command = client_command("dari", served.url, served.token_path) if served.url else f"connect to {socket}"
    raise Conflict(f"Dari is up already {place} (pid {served.pid})", f"use that one: {command}")


async def _serve_alone(settings: ServeSettings) -> int:
    """Our own tools and nobody's servers."""
    from dari.core.audit.spool import process_spool

    with closing(process_spool()) as spool:
        server = app.build(settings, spool)
        return await TransportSupervisor(server, settings, announce=partial(_banner, settings)).run()


async def _host(settings: ServeSettings) -> int:
    """Take the place of the bridge's daemon, and offer its servers beside our own tools."""
    from dari.bridge.service import Bridge
    from dari.cli.hub.daemon import host, take_over
    from dari.cli.hub.main import commands_for, servers_for
    from dari.cli.hub.paths import BridgePaths
    from dari.console.control import ConsoleControl
    from dari.transport.token_service import TokenService

    place, control = BridgePaths(), ConsoleControl()
    bridge = Bridge(place.state_dir, protected=(*place.protected, app.socket_path().parent))
    tokens = TokenService.of_home(lambda: bridge.audit, settings.token_path)
    async with AsyncExitStack() as stack:
        for is_last in (False, False, True):
            await take_over(place)
            try:
                hosting = host(
                    place,
                    bridge,
                    commands_for(bridge),
                    servers_for(bridge),
                    kind="hub",
                    tokens=tokens,
                    further_apis=[control],
                )
                hosted = await stack.enter_async_context(hosting)
                break
            except Conflict:
                if is_last:
                    raise  # else a command that came in between has started a daemon: ask that one too
        fronts = app.build_endpoints(settings, bridge)
        served = _Served()
        console = app.build_console(settings, bridge, fronts, lambda: served.url) if settings.has_console else None
        supervisor = TransportSupervisor(
            fronts.main.server,
            settings,
            announce=partial(_announce, settings, served, console),
            find_server=fronts.find,
            make_pages=None if console is None else console.app,
        )
        control.make_url = None if console is None else console.login_url
        asked = asyncio.create_task(_stop_when_asked(hosted, supervisor))
        fronts.start()
        preparing = asyncio.get_running_loop().call_later(PREPARE_AFTER_S, _prepare_tools, fronts.main.server)
        try:
            return await supervisor.run()
        finally:
            preparing.cancel()
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            if console is not None:
                await console.close()
            await fronts.close()


def _prepare_tools(server: Server) -> None:
    """Once it listens: neither the start nor the first client's first list should wait for toolkits to be imported."""
    server.registry.tools  # noqa: B018
    tune_gc_for_serving()


async def _stop_when_asked(hosted: Hosted, supervisor: TransportSupervisor) -> None:
    await hosted.lifetime.stopped()
    supervisor.stop()


def _settings(arguments: argparse.Namespace, transport: Transport, socket: Path | None) -> ServeSettings:
    return ServeSettings(
        transport=transport,
        http_bind=arguments.http_bind,
        http_port=arguments.http_port,
        token_path=Path(arguments.token_path).absolute() if arguments.token_path else app.token_path(),
        socket_path=socket,
        protocol=arguments.protocol,
        allowed_origins=tuple(arguments.allow_origin),
        allowed_hosts=tuple(arguments.allow_host),
        allowed_uids=read_uids(arguments.allow_uid),
        rate_limit=arguments.rate_limit,
        mode=arguments.mode,
        profile=arguments.profile or "",
        server=arguments.server or "",
        has_servers=not arguments.no_servers,
        has_console=_wants_console(arguments),
    )


def _wants_console(arguments: argparse.Namespace) -> bool:
    """By default on loopback alone: elsewhere its cookie would travel unencrypted."""
    chosen: bool | None = getattr(arguments, "console", False)
    if chosen is None:
        return is_loopback(arguments.http_bind)
    return chosen


@dataclass(slots=True)
class _Served:
    """Where the listener is, once it is open."""

    url: str = ""


def _announce(settings: ServeSettings, served: _Served, console: WebConsole | None, url: str, token_path: str) -> None:
    served.url = url
    _banner(settings, url, token_path, "" if console is None else _console_line(console))


def _console_line(console: WebConsole) -> str:
    """The link is for the person at this terminal; an agent that runs `dari up` gets none."""
    from dari.daemon.person import find_agent

    if find_agent(os.getpid()):
        return "run `dari console` in a terminal of your own"
    return f"{console.login_url()}   (works once, for ten minutes; later: dari console)"


def _banner(settings: ServeSettings, url: str, token_path: str, console: str = "") -> None:
    """What a person needs to connect; on stderr, because stdout may be protocol."""
    lines = [
        "",
        f"  Dari is up at {url}",
        f"  token file    {token_path}",
        *([f"  console       {console}"] if console else []),
        "",
        f"  {client_command('dari', url, token_path)}",
        "",
        "  Ctrl-C stops it.",
        "",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)
    warn_port_moved("dari", settings, url, token_path)
