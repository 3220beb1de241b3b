"""Ours, run as every command of ours runs a server: supervisor, token check, sessions, time limits."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from bench.servers.arguments import Arguments, parse
from bench.servers.dari_tools import registry_of
from dari import log
from dari.mcp.server import Info, Server
from dari.runtime import run_to_exit
from dari.settings import ServeSettings, Transport
from dari.transport.supervisor import TransportSupervisor


def main(given: Arguments) -> int:
    log.configure_logging("warning")

    async def serve() -> int:
        settings = ServeSettings(
            transport=cast(Transport, given.transport),
            http_port=given.http_port,
            token_path=Path(given.token_path),
        )
        server = Server(registry_of(given.tools), Info(name="dari", version="1"))
        return await TransportSupervisor(server, settings).run()

    return run_to_exit(serve)


if __name__ == "__main__":
    raise SystemExit(main(parse()))
