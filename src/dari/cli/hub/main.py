"""The hub's process, started by the first command that needs it: `python -m dari.cli.hub.main serve`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.service import Bridge
    from dari.cli.hub.connection import MakeServer, RunCommand
    from dari.cli.hub.socket_console import SocketConsole
    from dari.mcp.server import Server

_EPILOG = """\
Commands start it by themselves: crewx mcp remote, dari remote. It ends after 30 minutes without work
(DARI_BRIDGE_IDLE_S=seconds), with `crewx mcp remote daemon stop`, or with SIGTERM.
"""


def make_parser() -> argparse.ArgumentParser:
    from dari.cli.kit.program import ProgramParser

    parser = ProgramParser(
        prog="bridged",
        description="The bridge to other MCP servers as a daemon on a Unix socket.",
        epilog=_EPILOG,
    )
    parser.add_argument("command", nargs="?", choices=("serve",), default="serve", help="run in the foreground")
    parser.add_argument("--run-dir", metavar="DIR", type=Path, help="sockets, locks, tokens; 0700, made when missing")
    parser.add_argument("--state-dir", metavar="DIR", type=Path, help="pins, audit log, memory (default: data dir)")
    parser.add_argument("--stay", action="store_true", help="do not end when idle")
    parser.add_argument("--log", choices=("debug", "info", "warning", "error"), default="info", help="log level")
    return parser


def commands_for(bridge: Bridge) -> RunCommand:
    """Run a command or a server for a connection, on this bridge."""

    async def run_command(program: str, argv: list[str], terminal: SocketConsole, around: ClientEnvironment) -> int:
        from dari.cli.remote.main import run

        return await run(program, argv, terminal, bridge, around)

    return run_command


def servers_for(bridge: Bridge) -> MakeServer:
    """What an MCP client of the socket talks to; what it takes is imported when the first one comes."""

    @asynccontextmanager
    async def make_server(client: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        async with _make()(client, options) as server:
            yield server

    @cache
    def _make() -> MakeServer:
        from dari.app import servers_for_clients

        return servers_for_clients(bridge)

    return make_server


def _arguments(words: list[str]) -> SimpleNamespace | argparse.Namespace:
    """What commands start it with needs no parser, and the first command waits for this."""
    if words in (["serve"], ["serve", "--stay"]):
        return SimpleNamespace(run_dir=None, state_dir=None, stay="--stay" in words, log="info")
    return make_parser().parse_args(words)


def main(argv: list[str] | None = None) -> int:
    # Importing makes no garbage; looking for some costs a tenth of the start. `run_to_exit` turns it on again.
    gc.disable()
    os.umask(0o077)
    arguments = _arguments(sys.argv[1:] if argv is None else argv)
    from dari import log
    from dari.bridge.service import Bridge
    from dari.cli.hub.daemon import serve
    from dari.cli.hub.paths import BridgePaths
    from dari.runtime import run_to_exit

    log.configure_logging(arguments.log)
    place = BridgePaths(arguments.run_dir and arguments.run_dir.absolute(), arguments.state_dir)
    os.chdir("/")  # no folder of anybody stays in use because of us

    async def run() -> int:
        bridge = Bridge(place.state_dir, protected=place.protected)
        await serve(place, bridge, commands_for(bridge), servers_for(bridge), stays=arguments.stay)
        return 0

    return run_to_exit(run)


if __name__ == "__main__":
    sys.exit(main())
