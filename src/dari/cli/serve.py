"""`dari up` and `dari mcp`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dari import app, log
from dari.running import run_to_exit
from dari.settings import ServeSettings, Transport
from dari.transport.supervisor import Supervisor


def run_up(arguments: argparse.Namespace) -> int:
    """The hub in the foreground."""
    chosen = Path(arguments.socket).absolute() if arguments.socket else None
    return _serve(arguments, "http", chosen, is_hub=True)


def run_mcp(arguments: argparse.Namespace) -> int:
    return _serve(arguments, arguments.transport, None, is_hub=False)


def _serve(arguments: argparse.Namespace, transport: Transport, socket: Path | None, *, is_hub: bool) -> int:
    log.set_up(arguments.log)

    async def main() -> int:
        settings = ServeSettings(
            transport=transport,
            http_bind=arguments.http_bind,
            http_port=arguments.http_port,
            token_path=Path(arguments.token_path).absolute() if arguments.token_path else app.token_path(),
            socket_path=(socket or app.socket_path()) if is_hub else None,
            protocol=arguments.protocol,
            allowed_origins=tuple(arguments.allow_origin),
            allowed_hosts=tuple(arguments.allow_host),
            rate_limit=arguments.rate_limit,
        )
        server = app.build(settings)
        return await Supervisor(server, settings, announce=_banner if is_hub else None).run()

    return run_to_exit(main)


def _banner(url: str, token_path: str) -> None:
    """What a person needs to connect; on stderr, because stdout may be protocol."""
    lines = [
        "",
        f"  Dari is up at {url}",
        f"  token file    {token_path}",
        "",
        f"  claude mcp add --transport http dari {url} --header \"Authorization: Bearer $(cat '{token_path}')\"",
        "",
        "  Ctrl-C stops it.",
        "",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)
