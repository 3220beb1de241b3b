"""What commands of the proxy share: where crabd is, JSON, help with examples, hints that name commands."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dari.cli.kit.console import Output, ProcessConsole, write_text
from dari.cli.kit.hints import make_rewriter

if TYPE_CHECKING:
    from dari.cli.proxy.crab import Crab

Handle = Callable[[argparse.Namespace, "Crab", "Output"], Awaitable[int]]
Commands = argparse._SubParsersAction  # argparse has no public name for it

DEFAULT_WORDS = {
    "breakpoints": "list",
    "ca": "status",
    "capture": "status",
    "config": "show",
    "mcp": "status",
    "rules": "list",
    "traffic": "list",
}
"""What a group does when no word follows it."""


def subcommands(parser: argparse.ArgumentParser) -> Commands[argparse.ArgumentParser]:
    """The words below a word; without one of them its help is shown."""
    parser.set_defaults(shows_help=parser)
    return parser.add_subparsers(metavar="COMMAND")


def group(
    commands: Commands[argparse.ArgumentParser], name: str, help: str, examples: str
) -> Commands[argparse.ArgumentParser]:
    """A word with words below it."""
    parser = commands.add_parser(name, help=help)
    teach(parser, help, examples)
    return subcommands(parser)


def leaf(
    commands: Commands[argparse.ArgumentParser],
    name: str,
    handle: Handle,
    help: str,
    examples: str,
    *,
    starts: bool = True,
    has_json: bool = True,
) -> argparse.ArgumentParser:
    """A word that does something. `starts`: crabd is started when it is missing."""
    parser = commands.add_parser(name, help=help)
    complete(parser, handle, help, examples, starts=starts, has_json=has_json)
    return parser


def complete(
    parser: argparse.ArgumentParser,
    handle: Handle,
    help: str,
    examples: str,
    *,
    starts: bool = True,
    has_json: bool = True,
) -> None:
    """Give a parser what every doing word has."""
    teach(parser, help, examples)
    shared = parser.add_argument_group("for every command")
    if has_json:
        shared.add_argument("--json", action="store_true", help="the result as one JSON value on stdout")
    add_place(shared)
    parser.set_defaults(handle=handle, starts=starts)


def add_place(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Given before or after the command: a default here would undo what was given before."""
    parser.add_argument(
        "--run-dir",
        metavar="DIR",
        type=Path,
        default=argparse.SUPPRESS,
        help="the run directory of another crabd (socket and tokens)",
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        type=Path,
        default=argparse.SUPPRESS,
        help="the socket of another crabd (default: in its --run-dir)",
    )


def teach(parser: argparse.ArgumentParser, help: str, examples: str) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = help[0].upper() + help[1:] + "."
    lines = "\n".join("  " + line for line in examples.strip().splitlines())
    parser.epilog = f"examples:\n{lines}"


def on_off(text: str) -> bool:
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"must be 'on' or 'off', got {text[:40]!r}")
    return text == "on"


def byte_rate(text: str) -> int:
    """`64k`, `1.5m` or a plain number: bytes a second, with k = 1024 as in the presets."""
    number, factor = text.lower(), 1
    if number.endswith(("k", "m", "g")):
        factor = {"k": 1024, "m": 1024**2, "g": 1024**3}[number[-1]]
        number = number[:-1]
    try:
        value = float(number) * factor
    except ValueError:
        value = -1.0
    if not 0 <= value < 2**53:
        raise argparse.ArgumentTypeError(f"must be bytes a second, such as 65536, 64k or 1m, got {text[:40]!r}")
    return int(value)


def header(text: str) -> tuple[str, str]:
    """`Name: value`, as curl takes it."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError(f"must be 'Name: value', got {text[:40]!r}")
    return name.strip(), value.strip()


_AGE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MEMBERS = {
    "host": "host",
    "method": "method",
    "status": "status",
    "url": "url_contains",
    "url_regex": "url_regex",
    "header": "header_contains",
    "body": "body_contains",
    "mime": "mime",
    "since": "since_unix_ms",
    "errors": "has_error",
    "event": "event",
    "process": "process",
    "query": "query",
}


def add_filters(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_argument_group("which requests", "All conditions must hold; text is compared without case.")
    chosen.add_argument("--host", help="this host and its sub-domains; '*.example.com' for the latter only")
    chosen.add_argument("--method", help="one, or several with commas")
    chosen.add_argument("--status", help="404, 4xx, 400-499, 500-, or several with commas")
    chosen.add_argument("--url", metavar="TEXT", help="in the URL")
    chosen.add_argument("--url-regex", metavar="REGEX", help="found in the URL")
    chosen.add_argument("--header", metavar="TEXT", help="in a 'name: value' line of either direction")
    chosen.add_argument("--body", metavar="TEXT", help="in the decoded text of either direction")
    chosen.add_argument("--mime", metavar="TEXT", help="in the media type, such as json")
    chosen.add_argument("--since", metavar="WHEN", type=since, help="10m, 2h, 1d ago, or a time: 2026-11-16T09:30")
    chosen.add_argument("--errors", action="store_true", default=None, help="failed, or answered with 400 or above")
    chosen.add_argument("--event", help="upstream, tunnel, map_local, map_remote, blocked, fault, upstream_error …")
    chosen.add_argument("--process", metavar="NAME", help="in the name of the process that asked, or its pid")
    chosen.add_argument("--query", metavar="FILTER", help="as in the console: 'host:a.test -status:2xx time:>500ms'")


def filter_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was given, as the service takes it."""
    given = {member: getattr(arguments, option, None) for option, member in _MEMBERS.items()}
    return {member: value for member, value in given.items() if value is not None}


def since(text: str) -> int:
    """Milliseconds since 1970 of a time, or of so long ago."""
    found = _AGE.fullmatch(text)
    if found is not None:
        return int(time.time() * 1000 - float(found[1]) * _UNITS_MS[found[2]])
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"must be an age (30s, 10m, 2h, 1d) or a time (2026-11-16T09:30), got {text[:40]!r}"
        ) from None


COMMANDS = {
    "crab_rules_add_allow": "dari proxy rules add allow HOST",
    "crab_rules_list": "dari proxy rules",
    "crab_proxy_start": "dari proxy start",
    "crab_ca_generate": "dari proxy ca generate",
    "crab_env_snippet": "dari proxy env",
    "crab_traffic_search": "dari proxy traffic",
    "crab_traffic_tail": "dari proxy traffic",
    "crab_traffic_get": "dari proxy traffic show",
    "crab_logs_tail": "dari proxy traffic",
    "crab_engine_set_policy": "dari proxy set policy",
    "crab_engine_set_client_allowlist": "dari proxy set allowlist",
}
_PHRASES = {
    "dari proxy traffic or dari proxy traffic": "dari proxy traffic",
    "give overwrite=true": "give --overwrite",
    "with replace=true": "--replace",
    "replace=true": "--replace",
    "set matcher_kind to 'glob'": "give --glob",
    "set matcher_kind to 'regex'": "give --regex",
    "list the rules to see their ids": "`dari proxy rules` shows their ids",
    "start the daemon": "start it with `dari proxy start`",
}
for_shell = make_rewriter(COMMANDS, _PHRASES)


class PipedConsole(ProcessConsole):
    """Raises BrokenPipeError when the reader of stdout has left, so that `traffic --follow` ends with its reader."""

    def out(self, text: str) -> None:
        write_text(sys.stdout, text)


def make_output(*, as_json: bool) -> Output:
    return Output(as_json=as_json, console=PipedConsole(), rewrite=for_shell)
