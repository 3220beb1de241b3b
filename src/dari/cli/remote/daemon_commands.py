"""`daemon start|stop|status` as a running daemon answers them (design 001 §14.3).

Without one they are answered by `dari.cli.daemon_words`, which also ends the daemon as a whole.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from msgspec import to_builtins

from dari.bridge.paths import BridgePaths
from dari.bridge.upstream.status import Status
from dari.cli.remote import prewarm
from dari.cli.remote.choosing import add_server
from dari.cli.remote.failures import OK
from dari.cli.remote.payloads import print_json, print_table
from dari.cli.remote.world import World
from dari.daemon.lock import lock_holder
from dari.errors import InvalidInput, NotFound
from dari.text.sanitize import escape_hidden
from dari.version import VERSION

NAME = "daemon"
HELP = "Start, stop or look at the daemon that keeps servers warm."
DESCRIPTION = """\
The daemon keeps servers running between commands. Commands start it by themselves; without work it ends
after 30 minutes (DARI_BRIDGE_IDLE_S=seconds). One that `daemon start` was asked for stays until `daemon stop`."""
EXAMPLES = (
    ("daemon start", "a daemon that stays"),
    ("daemon start --server fs", "… with this server started and its lists fetched"),
    ("daemon status", "which servers run, with how many sessions and calls"),
    ("daemon stop --server fs", "end one server; its next use starts it again"),
    ("daemon stop", "end the daemon and every server it runs"),
)


def add(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    start = words.add_parser("start", help="start the daemon, or make the one that runs stay")
    add_server(start, has_all=True)
    start.add_argument("--json", action="store_true", help="print the result as JSON")
    stop = words.add_parser("stop", help="end the daemon, or one of its servers")
    which = stop.add_mutually_exclusive_group()
    which.add_argument("--server", metavar="ID", help="only this server; the daemon goes on")
    which.add_argument("--all", action="store_true", help="the daemon with all of its servers (the default)")
    stop.add_argument("--json", action="store_true", help="print the result as JSON")
    status = words.add_parser("status", help="does it run, and what does it run?")
    status.add_argument("--json", action="store_true", help="print it as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    if arguments.word == "status":
        return _status(arguments, world)
    if not _is_daemon():
        raise InvalidInput(
            f"this command runs without a daemon, so there is none to {arguments.word}",
            "leave --no-daemon out; where a warning says why none can be used, mend that first",
        )
    if arguments.word == "start":
        return await _start(arguments, world)
    return await _stop(arguments, world)


async def _start(arguments: argparse.Namespace, world: World) -> int:
    if arguments.server or arguments.endpoint or arguments.all:
        return await prewarm.run(arguments, world)
    if arguments.json:
        print_json(world.terminal, _about())
    else:
        world.say(f"The daemon runs (pid {os.getpid()}) and stays until: {world.program} daemon stop")
    return OK


async def _stop(arguments: argparse.Namespace, world: World) -> int:
    if not arguments.server:
        raise InvalidInput("the daemon does not end itself from within", f"run: {world.program} daemon stop")
    running = {status.id for status in world.bridge.statuses()}
    if arguments.server not in running:
        world.view.catalog().find(arguments.server)  # says which ones there are
    stopped = await world.bridge.stop_server(arguments.server)
    if arguments.json:
        print_json(world.terminal, {"server": arguments.server, "stopped": stopped > 0})
    elif stopped:
        world.say(escape_hidden(f"'{arguments.server}' has ended; its next use starts it again", one_line=True))
    else:
        world.say(escape_hidden(f"'{arguments.server}' was not running", one_line=True))
    return OK


def _status(arguments: argparse.Namespace, world: World) -> int:
    statuses = world.bridge.statuses()
    is_daemon = _is_daemon()
    if arguments.json:
        about = _about() if is_daemon else {"running": False}
        print_json(world.terminal, {**about, "servers": [to_builtins(status) for status in statuses]})
        return OK
    if not is_daemon:
        world.say(f"This command runs without a daemon. To start one: {world.program} daemon start")
        return OK
    minutes = max(0.0, time.time() - _since()) / 60
    up = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    world.say(f"The daemon runs: pid {os.getpid()}, dari {VERSION}, for {up}")
    if statuses:
        head = ("SERVER", "STATE", "PID", "SESSIONS", "CALLS", "TOOLS", "HELD", "RESTARTS", "ADDRESS", "LAST ERROR")
        print_table(world.terminal, head, map(_row, statuses))
    else:
        world.say("No server has been used yet.")
    return OK


def _row(status: Status) -> tuple[str, ...]:
    return (
        status.id,
        status.state,
        str(status.pid or "-"),
        str(status.sessions),
        str(status.calls),
        "-" if status.tools is None else str(status.tools),
        str(status.held),
        str(status.restarts),
        status.url or status.address,
        status.last_error or "-",
    )


def _about() -> dict[str, Any]:
    place = BridgePaths()
    return {
        "running": True,
        "pid": os.getpid(),
        "version": VERSION,
        "since_unix": round(_since(), 3),
        "door": str(place.cli_socket_path),
        "log": str(place.log_path),
    }


def _since() -> float:
    """The lock is written once, when a host takes its place."""
    try:
        return BridgePaths().lock_path.stat().st_mtime
    except OSError:
        raise NotFound("the daemon's lock is gone", "start it again") from None


def _is_daemon() -> bool:
    """Whether this process hosts the bridge for others, or runs one command."""
    return lock_holder(BridgePaths().lock_path) == os.getpid()
