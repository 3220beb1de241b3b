"""`cruxd`: the daemon of the terminal."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from dari.cli.kit.errors import run_guarded
from dari.cli.kit.program import ProgramParser, nonnegative
from dari.cli.ports import add_allow_uid, port_number
from dari.version import VERSION

_EPILOG = """\
examples:
  cruxd                                    serve on ~/.crux/mcp.sock until Ctrl-C or `crux kill-server`
  cruxd serve --http 3100                  and over HTTP on 127.0.0.1:3100/mcp, with the token of its token file
  cruxd serve --socket /run/me/crux/mcp.sock

Clients: crux-mcp-bridge (agents) and crux (people) start it by themselves. Panes live on when they leave.
Guide: docs/guide/terminal.md
"""


def make_parser() -> argparse.ArgumentParser:
    parser = ProgramParser(
        prog="cruxd",
        description="Terminal panes that agents drive and people watch, as a daemon on a Unix socket.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"cruxd {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser("serve", help="run in the foreground (the default)", description="Run the daemon.")
    add = serve.add_argument
    add("--socket", metavar="PATH", type=Path, help="the MCP socket (default: $CRUX_SOCKET, else ~/.crux/mcp.sock)")
    add("--config", metavar="FILE", type=Path, help="the crux.toml (default: $CRUX_CONFIG, else the usual one)")
    add("--http", metavar="PORT", type=port_number, help="listen for MCP over HTTP on 127.0.0.1, too; 0 for any port")
    add_allow_uid(serve)
    add("--idle", metavar="SECONDS", type=nonnegative, default=600.0, help="end when unused for so long; 0: never")
    add("--rate", metavar="N", type=nonnegative, help="calls a second and client (default: 100); 0: no limit")
    add("--log", choices=("debug", "info", "warning", "error"), default="info", help="log level")
    return parser


def main(argv: list[str] | None = None) -> int:
    return run_guarded(lambda: _main(sys.argv[1:] if argv is None else argv), interrupted=0, failed=1)


def _main(given: list[str]) -> int:
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given = ["serve", *given]
    arguments = make_parser().parse_args(given)
    from dari import log
    from dari.runtime import run_to_exit
    from dari.terminal.daemon import CruxOptions, serve
    from dari.terminal.paths import CruxPaths
    from dari.transport.peer_uids import read_uids

    log.configure_logging(arguments.log)
    gc.set_threshold(50_000, 20, 100)
    place = CruxPaths.of_environment(arguments.socket, arguments.config)

    async def run() -> int:
        uids = read_uids(arguments.allow_uid)
        await serve(place, CruxOptions(arguments.http, arguments.idle, arguments.rate, _announce, uids))
        return 0

    return run_to_exit(run)


def _announce(url: str, token_path: str) -> None:
    print(f"cruxd listening on {url}", file=sys.stderr)
    print(f"cruxd token file {token_path}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
