"""`prewarm`: start a server and fetch its lists before somebody waits for them (design 001 §14.3)."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from dari.cli.remote.choosing import add_server, upstreams_of
from dari.cli.remote.deadlines import Deadline
from dari.cli.remote.failures import OK, exit_code, tell, with_server
from dari.cli.remote.payloads import print_json
from dari.cli.remote.tracing import duration, traced
from dari.cli.remote.world import World
from dari.errors import DariError
from dari.text.sanitize import escape_hidden

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream

NAME = "prewarm"
HELP = "Start a server and fetch its lists, so that the next call is fast."
DESCRIPTION = (
    "Open a session with a server and fetch its lists: a local server is started, lists are cached. "
    "A server that failed (backoff, crash-loop) is tried at once. "
    "The session lasts as long as the daemon keeps it (idleExitMs)."
)
EXAMPLES = (
    ("prewarm --server fs", "one server"),
    ("prewarm --all", "every server that is ready, all at once"),
)


def add(parser: argparse.ArgumentParser) -> None:
    add_server(parser, has_all=True)
    parser.add_argument("--json", action="store_true", help="print what is warm, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    chosen = upstreams_of(arguments, world)
    answers = await asyncio.gather(*(_warmed(each, arguments.timeout, world) for each in chosen))
    warm = [each for each in answers if not isinstance(each, int)]
    if arguments.json:
        print_json(world.terminal, warm)
    else:
        for each in warm:
            who = " ".join(part for part in (each["name"], each["serverVersion"]) if part) or "it"
            tools = "unknown tools" if each["tools"] is None else f"{each['tools']} tools"
            line = f"✓ {each['server']} is warm: {who}, protocol {each['protocol']}, {tools} ({duration(each['ms'])})"
            world.say(escape_hidden(line, one_line=True))
    return max((code for code in answers if isinstance(code, int)), default=OK)


async def _warmed(upstream: Upstream, limit_ms: int | None, world: World) -> dict[str, Any] | int:
    try:
        with traced(world, upstream, "open") as trace:
            async with Deadline(limit_ms).over("the start"):
                upstream.retry()
                about = await upstream.start()
    except DariError as error:
        tell(with_server(error, upstream.id), world.terminal)
        return exit_code(error)
    return {
        "server": upstream.id,
        "name": about.name,
        "serverVersion": about.server_version,
        "protocol": about.version,
        "tools": upstream.status().tools,
        "ms": round(trace.ms, 1),
    }
