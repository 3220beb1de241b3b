"""`kebabd`: keeps the knowledge base open, so that `kebab search` costs what the start of a command costs."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dari.cli.kit.errors import run_guarded
from dari.cli.kit.program import ProgramParser, nonnegative
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.bridge.config.locations import ClientEnvironment
    from dari.cli.hub.socket_console import SocketConsole
    from dari.daemon.lifetime import Lifetime
    from dari.knowledge.config import DaemonSettings
    from dari.knowledge.daemon import KebabPaths
    from dari.knowledge.service import ServiceCache
    from dari.mcp.server import Server

_EPILOG = """\
Commands start it by themselves (kebab search, kebab ask, …). It ends after 30 minutes without a request
([daemon] idle_s), with `kebab daemon stop`, or with SIGTERM. With --watch, or [daemon] watch = true, it
indexes the configured folders again whenever a file changes, and stays. Guide: docs/guide/kebab.md
"""


def make_parser() -> argparse.ArgumentParser:
    parser = ProgramParser(
        prog="kebabd",
        description="The knowledge base as a warm daemon on a Unix socket.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"kebabd {VERSION}")
    parser.add_argument("command", nargs="?", choices=("serve",), default="serve", help="run in the foreground")
    parser.add_argument("--run-dir", metavar="DIR", type=Path, help="sockets, lock, tokens; 0700, made when missing")
    parser.add_argument("--config", metavar="FILE", help="the configuration that --watch and the hub's tools use")
    parser.add_argument("--watch", action="store_true", help="index again whenever a file changes, and stay")
    parser.add_argument("--idle", metavar="SECONDS", type=nonnegative, help="end when unused for so long; 0: never")
    parser.add_argument("--log", choices=("debug", "info", "warning", "error"), default="info", help="log level")
    return parser


def main(argv: list[str] | None = None) -> int:
    return run_guarded(lambda: _main(argv), interrupted=0, failed=1)


def _main(argv: list[str] | None) -> int:
    gc.disable()
    arguments = make_parser().parse_args(argv)
    from dari import log
    from dari.knowledge.daemon import KebabPaths
    from dari.runtime import run_to_exit

    log.configure_logging(arguments.log)
    paths = KebabPaths(arguments.run_dir and arguments.run_dir.absolute())
    config = arguments.config and os.path.abspath(arguments.config)
    os.chdir("/")

    async def run() -> int:
        from dari.daemon.lifetime import Lifetime, run_daemon
        from dari.runtime import tune_gc_for_serving

        chosen = _daemon_settings(config)
        watches = arguments.watch or chosen.watch
        idle_s = chosen.idle_s if arguments.idle is None else arguments.idle
        lifetime = Lifetime(0.0 if watches else idle_s)
        _warm_up()
        tune_gc_for_serving()
        await run_daemon(host(paths, config, lifetime, watches=watches), lifetime)
        return 0

    return run_to_exit(run)


@asynccontextmanager
async def host(
    paths: KebabPaths, config: str | None, lifetime: Lifetime, *, watches: bool = False
) -> AsyncIterator[None]:
    """Both sockets, open; one set of services behind them."""
    from dari.cli.hub.server import CliSocketServer
    from dari.knowledge.api import KnowledgeApi
    from dari.knowledge.daemon import make_daemon
    from dari.knowledge.service import ServiceCache
    from dari.knowledge.upkeep import Upkeep

    services = ServiceCache()
    api = KnowledgeApi(lambda: services.get(config, os.environ, False))
    async with AsyncExitStack() as held:
        held.callback(services.close)
        held.callback(api.close)
        daemon = make_daemon(paths, api, lifetime)
        await held.enter_async_context(daemon)
        commands = CliSocketServer(
            paths.run_dir,
            _runner(services),
            _no_servers,
            lifetime=lifetime,
        )
        await held.enter_async_context(commands)
        upkeep = Upkeep(lambda: services.get(config, os.environ, False).settings)
        working = asyncio.create_task(upkeep.run(watches=watches))
        held.push_async_callback(_end, working)
        lifetime.is_busy = lambda: bool(commands.connections or daemon.connections or upkeep.is_working)
        yield


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _runner(services: ServiceCache) -> Any:
    from dari.cli.kebab.main import run

    async def run_command(program: str, argv: list[str], console: SocketConsole, around: ClientEnvironment) -> int:
        return await run(program, argv, console, services, around.environ, around.cwd)

    return run_command


@asynccontextmanager
async def _no_servers(client: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
    from dari.errors import InvalidInput

    raise InvalidInput("kebabd serves commands, not MCP", "agents start `kebab mcp`")
    yield  # pragma: no cover


def _daemon_settings(config: str | None) -> DaemonSettings:
    """A configuration that cannot be read is the error of the command that uses it."""
    from dari.errors import DariError
    from dari.knowledge.config import DaemonSettings, load_settings

    try:
        return load_settings(config).config.daemon
    except (DariError, OSError):
        return DaemonSettings()


def _warm_up() -> None:
    """What the first search would import."""
    import dari.cli.kebab.search
    import dari.knowledge.index.lexical
    import dari.knowledge.search.searcher
    import dari.knowledge.store.sqlite  # noqa: F401


if __name__ == "__main__":
    sys.exit(main())
