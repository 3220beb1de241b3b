"""`dari proxy …`: the parser, and where errors become exit codes. Only the group that was named is loaded."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from typing import NamedTuple

from dari.cli.kit.program import ProgramParser
from dari.cli.proxy.options import DEFAULT_WORDS, add_place

_EPILOG = """\
examples:
  dari proxy run -- curl -s https://example.com/      what does this command request?
  dari proxy start --ca                               a proxy on 127.0.0.1:8888 that can decrypt
  eval "$(dari proxy env)"                            point this shell's programs at it
  dari proxy rules add allow example.com              decrypt this host
  dari proxy traffic --follow                         watch
  dari proxy stop --daemon                            everything off

Every command has examples: dari proxy rules add --help. Guide: docs/guide/proxy.md
"""


class CommandGroup(NamedTuple):
    name: str
    module: str
    help: str


GROUPS = (
    CommandGroup("run", "run", "run a command through the proxy and show what it requested"),
    CommandGroup("start", "control", "start the proxy, and crabd when it is missing"),
    CommandGroup("stop", "control", "stop the proxy"),
    CommandGroup("status", "control", "what runs, where, with how much traffic"),
    CommandGroup("doctor", "control", "check crabd, its files, the CA and the listener"),
    CommandGroup("env", "control", "the variables that point programs at the proxy"),
    CommandGroup("capture", "control", "record requests, or only pass them on"),
    CommandGroup("rules", "rules", "allow, map, rewrite, block, delay, break, mock"),
    CommandGroup("traffic", "traffic", "look at requests, wait for them, send them again"),
    CommandGroup("har", "har", "export traffic to a HAR file, or import one"),
    CommandGroup("breakpoints", "breakpoints", "requests that are held: look, edit, let go"),
    CommandGroup("ca", "ca", "the certificate authority that HTTPS is decrypted with"),
    CommandGroup("config", "settings", "show the settings"),
    CommandGroup("set", "settings", "change a setting, also while the proxy runs"),
    CommandGroup("mcp", "mcp", "the MCP server for agents: HTTP in the background, on and off"),
)


def make_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, or as much of it as `only` needs."""
    parser = ProgramParser(
        prog="dari proxy",
        description="An HTTP(S) debugging proxy: see, change and replay what programs send.",
        epilog=_EPILOG,
    )
    add_place(parser)
    parser.set_defaults(shows_help=parser)
    commands = parser.add_subparsers(metavar="COMMAND")
    for one in GROUPS:
        if only in (None, one.name):
            module = importlib.import_module(f"dari.cli.proxy.{one.module}")
            getattr(module, f"add_{one.name}")(commands, one.help)
        else:
            commands.add_parser(one.name, help=one.help)
    return parser


def main(words: list[str]) -> int:
    words = _completed(words)
    named = words[_command_at(words) : _command_at(words) + 1]
    known = {one.name for one in GROUPS}
    arguments = make_parser(named[0] if named and named[0] in known else "").parse_args(words)
    if not hasattr(arguments, "handle"):
        # No command is fine; half a command is a mistake.
        arguments.shows_help.print_help(sys.stderr if named else sys.stdout)
        return 2 if named else 0
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has closed the pipe; the interpreter's own flush must not complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: argparse.Namespace) -> int:
    import asyncio

    from dari.cli.proxy.crab import Crab
    from dari.cli.proxy.options import make_output
    from dari.errors import DariError
    from dari.proxy.daemon import CrabPaths

    gc.enable()
    out = make_output(as_json=getattr(arguments, "json", False) is True)

    async def handle() -> int:
        place = CrabPaths(getattr(arguments, "run_dir", None), getattr(arguments, "socket", None))
        crab = Crab(place, starts=arguments.starts)
        try:
            code: int = await arguments.handle(arguments, crab, out)
            return code
        finally:
            await crab.close()

    try:
        return asyncio.run(handle())
    except (DariError, OSError) as problem:
        from dari.os_errors import from_os_error

        error = from_os_error(problem)
        if error is None:
            raise
        out.error(error)
        return error.exit_code


def _completed(words: list[str]) -> list[str]:
    """`traffic --host x` is `traffic list --host x`."""
    at = _command_at(words)
    following = words[at + 1] if at + 1 < len(words) else "-"
    default = DEFAULT_WORDS.get(words[at]) if at < len(words) else None
    if default is None or not following.startswith("-") or following in ("-h", "--help"):
        return words
    return [*words[: at + 1], default, *words[at + 1 :]]


def _command_at(words: list[str]) -> int:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("--run-dir", "--socket") else 1
    return at
