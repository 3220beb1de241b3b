"""`dari console`: log a browser in to the console of the hub that runs."""

from __future__ import annotations

import argparse
import asyncio
import sys
import webbrowser

from dari.cli.kit.program import ProgramParser
from dari.console.control import ConsoleControl, LoginLink
from dari.core.hub_client import hub_client
from dari.daemon.stub import make_stub
from dari.errors import NotFound, Unavailable

_EPILOG = """\
examples:
  dari console                    open it in your browser, logged in
  dari console --print            print a link that works once, within ten minutes

guide: docs/guide/console.md
"""


def make_parser() -> argparse.ArgumentParser:
    parser = ProgramParser(
        prog="dari console",
        description="Open the web console of the running hub (`dari up`): what agents do, and what waits for you.",
        epilog=_EPILOG,
    )
    parser.add_argument("--print", action="store_true", help="print the link instead of opening a browser")
    return parser


def main(words: list[str]) -> int:
    arguments = make_parser().parse_args(words)
    link = asyncio.run(_ask())
    if not arguments.print and webbrowser.open(link.url):
        print("opened the console in your browser", file=sys.stderr)
        return 0
    print(link.url)
    minutes = round(link.lifetime_s / 60)
    print(f"the link works once, within {minutes} minutes", file=sys.stderr)
    return 0


async def _ask() -> LoginLink:
    try:
        return await make_stub(ConsoleControl, hub_client("cli", starts=False)).login()
    except Unavailable as error:
        if "console" in error.message:
            raise
        raise Unavailable(
            "no hub runs, so there is no console", "start it in a terminal of your own: dari up"
        ) from error
    except NotFound as error:
        raise Unavailable(
            "the hub that runs has no console: a command started it in the background",
            "run `dari up` in a terminal of your own; it takes that hub's place",
        ) from error
