"""`crabd`: the daemon of the proxy."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from dari.cli.kit.errors import run_guarded
from dari.cli.kit.program import ProgramParser
from dari.version import VERSION

_EPILOG = """\
examples:
  crabd                                   serve in the usual place until Ctrl-C or system.shutdown
  crabd serve --run-dir /tmp/mine         a second proxy with tokens, rules and traffic of its own

Clients: crab-mcp (agents) and `dari proxy` (people) start it by themselves. Settings, rules and
captures survive a restart. Guide: docs/guide/proxy.md
"""


def make_parser() -> argparse.ArgumentParser:
    parser = ProgramParser(
        prog="crabd",
        description="The HTTP(S) debugging proxy as a daemon on a Unix socket.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"crabd {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    serve = commands.add_parser("serve", help="run in the foreground (the default)", description="Run the daemon.")
    _add_places(serve)
    return parser


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run-dir", metavar="DIR", type=Path, help="socket, lock and tokens; 0700, made when missing")
    parser.add_argument("--socket", metavar="PATH", type=Path, help="the Unix socket (default: in the run directory)")
    parser.add_argument(
        "--state-dir", metavar="DIR", type=Path, help="settings, rules, CA, traffic (default: in the data directory)"
    )
    parser.add_argument("--log", choices=("debug", "info", "warning", "error"), default="info", help="log level")


def main(argv: list[str] | None = None) -> int:
    return run_guarded(lambda: _main(sys.argv[1:] if argv is None else argv), interrupted=0, failed=1)


def _main(given: list[str]) -> int:
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given = ["serve", *given]
    arguments = make_parser().parse_args(given)
    from dari import log
    from dari.proxy.daemon import CrabPaths, serve
    from dari.runtime import raise_file_limit, run_to_exit

    log.configure_logging(arguments.log)
    raise_file_limit()

    # Many requests make garbage that is gone at once; looking for cycles every 700 objects costs them 2 µs each.
    gc.set_threshold(50_000, 20, 100)

    async def run() -> int:
        await serve(CrabPaths(arguments.run_dir, arguments.socket, arguments.state_dir))
        return 0

    return run_to_exit(run)


if __name__ == "__main__":
    sys.exit(main())
