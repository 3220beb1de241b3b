"""`crab-mcp`: the proxy's tools for agents, over stdio, HTTP or both (design 000)."""

from __future__ import annotations

import argparse
import gc
import sys

from dari.cli.kit.errors import run_guarded
from dari.cli.kit.program import ProgramParser
from dari.cli.ports import add_allow_uid, port_number, warn_port_moved
from dari.version import VERSION

TYPE_CHECKING = False  # from typing it costs a tenth of `--version`; type checkers know the name
if TYPE_CHECKING:
    from dari.daemon.client import DaemonClient
    from dari.mcp.server import Server
    from dari.settings import ServeSettings

_EPILOG = """\
examples:
  crab-mcp                                    serve the client that started it, on stdin and stdout
  crab-mcp --transport http                   serve http://127.0.0.1:3847/mcp until Ctrl-C
  crab-mcp --transport both --tools core      both at once, with the 32 tools of the design only
  claude mcp add crab -- crab-mcp             for Claude Code

The proxy itself runs in crabd, which is started when it is missing and goes on when this command ends.
HTTP callers send the content of crabd's mcp.token: Authorization: Bearer $(cat TOKEN_PATH). The file's
path is printed at start; its content changes when crabd restarts. Guide: docs/guide/crab-mcp.md
"""


def make_parser() -> argparse.ArgumentParser:
    parser = ProgramParser(
        prog="crab-mcp",
        description="An MCP server that gives agents an HTTP(S) debugging proxy.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("--version", action="version", version=f"crab-mcp {VERSION}")
    add("--transport", choices=("stdio", "http", "both"), default="stdio", help="default: %(default)s")
    add("--http-bind", metavar="ADDR", default="127.0.0.1", help="default: %(default)s")
    add("--http-port", metavar="PORT", type=port_number, help="default: 3847, or the next free one up to 3857")
    add_allow_uid(parser)
    add(
        "--tools",
        choices=("core", "all"),
        default="all",
        help="core: the 32 of the design; all: with search, replay, HAR, breakpoints, … (default: %(default)s)",
    )
    add(
        "--protocol",
        choices=("negotiate", "strict"),
        default="negotiate",
        help="strict speaks 2024-11-05 and refuses everything else (default: %(default)s)",
    )
    daemon = parser.add_argument_group("where crabd is")
    daemon.add_argument("--run-dir", metavar="DIR", help="its run directory (default: the user's own)")
    daemon.add_argument("--socket", metavar="PATH", help="its Unix socket (default: in the run directory)")
    daemon.add_argument(
        "--token-path",
        metavar="PATH",
        help="the token for crabd, which HTTP callers show, too (default: mcp.token in the run directory)",
    )
    daemon.add_argument("--principal", choices=("mcp", "cli", "app"), default="mcp", help="default: %(default)s")
    daemon.add_argument(
        "--daemon-path", metavar="PATH", help="the crabd to start (default: the one of this installation)"
    )
    daemon.add_argument(
        "--ensure-daemon",
        metavar="true|false",
        nargs="?",
        const=True,
        default=True,
        type=_switch,
        help="start crabd when it does not answer (default: true)",
    )
    add("--log", choices=("debug", "info", "warning", "error"), default="info", help="log level, on stderr")
    return parser


def main(argv: list[str] | None = None) -> int:
    return run_guarded(lambda: _main(argv), interrupted=0, failed=1)


def _main(argv: list[str] | None) -> int:
    arguments = make_parser().parse_args(argv)
    # Importing makes no garbage; looking for some costs a tenth of the start. `run_to_exit` turns it on again.
    gc.disable()
    from dari import log
    from dari.runtime import run_to_exit

    log.configure_logging(arguments.log)
    return run_to_exit(lambda: _serve(arguments))


async def _serve(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from dari import app
    from dari.core.audit.spool import process_spool
    from dari.proxy.daemon import CrabPaths, crabd_client
    from dari.settings import ServeSettings
    from dari.transport.peer_uids import read_uids

    run_dir, socket, token = (
        None if given is None else Path(given).absolute()
        for given in (arguments.run_dir, arguments.socket, arguments.token_path)
    )
    place = CrabPaths(run_dir, socket)
    token_path = token or place.token(arguments.principal)
    settings = ServeSettings(
        transport=arguments.transport,
        http_bind=arguments.http_bind,
        http_port=arguments.http_port,
        token_path=token_path,
        protocol=arguments.protocol,
        allowed_uids=read_uids(arguments.allow_uid),
    )
    async with crabd_client(
        place,
        arguments.principal,
        token_path=token_path,
        starts=arguments.ensure_daemon,
        daemon_path=arguments.daemon_path,
    ) as crabd:
        spool = process_spool()
        server = app.build_crab(crabd, settings, arguments.tools, spool)
        try:
            if arguments.transport == "stdio":
                return await _serve_stdio(server, settings, crabd if arguments.ensure_daemon else None)
            return await _serve_http(server, settings, crabd, starts=arguments.ensure_daemon)
        finally:
            spool.close()


async def _serve_stdio(server: Server, settings: ServeSettings, crabd: DaemonClient | None) -> int:
    """Answer at once and start crabd meanwhile; without a crabd to talk to there is nothing to serve."""
    import asyncio

    from dari.transport.supervisor import TransportSupervisor

    supervisor = TransportSupervisor(server, settings)
    if crabd is None:
        return await supervisor.run()
    reaching = asyncio.create_task(crabd.call("system.ping"))
    reaching.add_done_callback(lambda task: supervisor.stop() if not task.cancelled() and task.exception() else None)
    try:
        code = await supervisor.run()
    finally:
        reaching.cancel()
        await asyncio.wait({reaching})
    if not reaching.cancelled():
        reaching.result()
    return code


async def _serve_http(server: Server, settings: ServeSettings, crabd: DaemonClient, *, starts: bool) -> int:
    """crabd first: its token is the one that callers have to show."""
    from dari.errors import DariError, Unavailable
    from dari.transport.supervisor import TransportSupervisor

    assert settings.token_path is not None
    try:
        await crabd.call("system.ping")
    except DariError as error:
        if starts:
            raise
        if not settings.token_path.exists():
            raise Unavailable(error.message, f"{error.hint}; it makes {settings.token_path}") from error

    def announce(url: str, token_path: str) -> None:
        _announce(url, token_path)
        warn_port_moved("crab", settings, url, token_path, renew="dari proxy stop --daemon, then start again")

    return await TransportSupervisor(server, settings, announce=announce).run()


def _announce(url: str, token_path: str) -> None:
    print(f"crab-mcp listening on {url}", file=sys.stderr)
    print(f"crab-mcp token file {token_path}", file=sys.stderr, flush=True)


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"must be true or false, got {text[:40]!r}")
    return text.lower() == "true"


if __name__ == "__main__":
    sys.exit(main())
