"""`daemon start|stop|status` as a running daemon answers them (design 001 §14.3).

Without one they are answered by `dari.cli.daemons`, which also ends the daemon as a whole.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from dari.bridge.upstream.status import UpstreamStatus
from dari.cli.hub.paths import BridgePaths
from dari.cli.kit.console import print_json
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_duration, one_line, print_table
from dari.cli.remote.context import (
    OK,
    CommandContext,
    add_server_options,
    exit_code,
    name_server,
    resolve_pin_name,
    select_upstreams,
    show_error,
)
from dari.cli.remote.progress import Deadline, trace_exchange
from dari.daemon.lock import lock_holder
from dari.errors import DariError, InvalidInput, NotFound
from dari.text.sanitize import escape_hidden
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream


def add_prewarm(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, has_all=True)
    parser.add_argument("--json", action="store_true", help="print the warm servers as JSON")


async def run_prewarm(arguments: argparse.Namespace, context: CommandContext) -> int:
    chosen = select_upstreams(arguments, context)
    answers = await asyncio.gather(*(_warmed(each, arguments.timeout, context) for each in chosen))
    warm = [each for each in answers if not isinstance(each, int)]
    if arguments.json:
        print_json(context.console, warm)
    else:
        for each in warm:
            who = " ".join(part for part in (each["name"], each["serverVersion"]) if part) or "it"
            tools = "unknown tools" if each["tools"] is None else f"{each['tools']} tools"
            took = format_duration(each["ms"])
            line = f"✓ {each['server']} is warm: {who}, protocol {each['protocol']}, {tools} ({took})"
            context.say(escape_hidden(line, one_line=True))
    return max((code for code in answers if isinstance(code, int)), default=OK)


async def _warmed(upstream: Upstream, limit_ms: int | None, context: CommandContext) -> dict[str, Any] | int:
    try:
        with trace_exchange(context, upstream, "open") as trace:
            async with Deadline(limit_ms).over("the start"):
                upstream.retry()
                about = await upstream.start()
    except DariError as error:
        show_error(name_server(error, upstream.id), context.console)
        return exit_code(error)
    return {
        "server": upstream.id,
        "name": about.name,
        "serverVersion": about.server_version,
        "protocol": about.version,
        "tools": upstream.status().tools,
        "ms": round(trace.ms, 1),
    }


def add_daemon(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    start = words.add_parser("start", help="start the daemon, or make the one that runs stay")
    add_server_options(start, has_all=True)
    start.add_argument("--json", action="store_true", help="print the result as JSON")
    stop = words.add_parser("stop", help="end the daemon, or one of its servers")
    which = stop.add_mutually_exclusive_group()
    which.add_argument("--server", metavar="ID", help="only this server; the daemon goes on")
    which.add_argument("--all", action="store_true", help="the daemon with all of its servers (the default)")
    stop.add_argument("--json", action="store_true", help="print the result as JSON")
    status = words.add_parser("status", help="does it run, and what does it run?")
    status.add_argument("--json", action="store_true", help="print it as JSON")
    for each in (start, stop, status):  # the common options, which `daemon` itself lists
        for option in ("--log", "--no-daemon"):
            each.add_argument(option, action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        each.add_argument("--config", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


async def run_daemon(arguments: argparse.Namespace, context: CommandContext) -> int:
    if arguments.word == "status":
        return _status(arguments, context)
    if not _is_daemon():
        raise InvalidInput(
            f"this command runs without a daemon, so it cannot {arguments.word} one",
            "leave --no-daemon out; where a warning says why none can be used, fix that first",
        )
    if arguments.word == "start":
        return await _start(arguments, context)
    return await _stop(arguments, context)


async def _start(arguments: argparse.Namespace, context: CommandContext) -> int:
    if arguments.server or arguments.endpoint or arguments.all:
        return await run_prewarm(arguments, context)
    if arguments.json:
        print_json(context.console, _about())
    else:
        context.say(f"The daemon runs (pid {os.getpid()}) and stays until: {context.program} daemon stop")
    return OK


async def _stop(arguments: argparse.Namespace, context: CommandContext) -> int:
    if not arguments.server:
        raise InvalidInput("a command that runs in the daemon cannot stop it", f"run: {context.program} daemon stop")
    running = {status.id for status in context.bridge.statuses()}
    if arguments.server not in running:
        context.view.catalog().find(arguments.server)  # says which ones there are
    stopped = await context.bridge.stop_server(arguments.server)
    if arguments.json:
        print_json(context.console, {"server": arguments.server, "stopped": stopped > 0})
    elif stopped:
        context.say(escape_hidden(f"'{arguments.server}' has ended; its next use starts it again", one_line=True))
    else:
        context.say(escape_hidden(f"'{arguments.server}' was not running", one_line=True))
    return OK


def _status(arguments: argparse.Namespace, context: CommandContext) -> int:
    statuses = context.bridge.statuses()
    is_daemon = _is_daemon()
    if arguments.json:
        about = _about() if is_daemon else {"running": False}
        print_json(context.console, {**about, "servers": [to_builtins(status) for status in statuses]})
        return OK
    if not is_daemon:
        context.say(f"This command runs without a daemon. To start one: {context.program} daemon start")
        return OK
    minutes = max(0.0, time.time() - _since()) / 60
    up = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    context.say(f"The daemon runs: pid {os.getpid()}, dari {VERSION}, for {up}")
    if statuses:
        head = ("SERVER", "STATE", "PID", "SESSIONS", "CALLS", "TOOLS", "HELD", "RESTARTS", "ADDRESS", "LAST ERROR")
        print_table(context.console, head, map(_row, statuses))
    else:
        context.say("No server has been used yet.")
    return OK


def _row(status: UpstreamStatus) -> tuple[str, ...]:
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
        "door": str(place.cli_socket),
        "log": str(place.log),
    }


def _since() -> float:
    """The lock is written once, when a host takes its place."""
    try:
        return BridgePaths().lock.stat().st_mtime
    except OSError:
        raise NotFound("the daemon's lock is gone", "start it again") from None


def _is_daemon() -> bool:
    """Whether this process hosts the bridge for others, or runs one command."""
    return lock_holder(BridgePaths().lock) == os.getpid()


def add_rename(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="its name now")
    parser.add_argument("new", help="its new name")


async def run_rename(arguments: argparse.Namespace, context: CommandContext) -> int:
    pins = resolve_pin_name(context, arguments.id)
    path = await asyncio.to_thread(context.view.book.rename, arguments.id, arguments.new)
    context.console.out(f"renamed '{one_line(arguments.id)}' to '{one_line(arguments.new)}' in {one_line(path)}\n")
    if context.bridge.pins.pinned(pins):
        context.console.err("its pins stay under the old name: the next use under the new one is a first use\n")
    return 0


async def stop_servers(context: CommandContext, path: Path, id: str | None = None) -> None:
    """What runs of this file, or of one server in it, ends now and not when it has been idle for a while."""
    for upstream in context.bridge.pool:
        if upstream.profile.source.file == str(path) and id in (None, upstream.id):
            await upstream.stop()


def report_switch(context: CommandContext, id: str, what: str, path: Path) -> int:
    context.console.out(f"{what} '{one_line(id)}' in {one_line(path)}\n")
    listed = context.view.book.load().find(id)
    if listed.state == "untrusted":
        context.console.err(
            f"the file is not trusted, so nothing in it runs: {context.program} trust {one_line(path)}\n"
        )
    elif listed.state == "broken":
        context.console.err(f"it cannot be read, though: {one_line(listed.message)}\n")
    return 0


def add_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run_remove(arguments: argparse.Namespace, context: CommandContext) -> int:
    book, console = context.view.book, context.console
    id = arguments.id
    pins = resolve_pin_name(context, id)
    path = await asyncio.to_thread(book.remove, id)
    await stop_servers(context, path, id)
    console.out(f"removed '{one_line(id)}' from {one_line(path)}\n")
    again = next((one for one in book.load().listed if one.id == id), None)
    if again is not None:
        console.err(f"'{one_line(id)}' of {one_line(again.source)} counts now\n")
    elif context.bridge.pins.pinned(pins):
        console.err(f"what was pinned of it stays; to forget it: {context.program} forget-pins {one_line(pins)}\n")
    return 0


def add_enable(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run_enable(arguments: argparse.Namespace, context: CommandContext) -> int:
    path = await asyncio.to_thread(context.view.book.enable, arguments.id)
    return report_switch(context, arguments.id, "enabled", path)


def add_disable(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run_disable(arguments: argparse.Namespace, context: CommandContext) -> int:
    path = await asyncio.to_thread(context.view.book.disable, arguments.id)
    await stop_servers(context, path, arguments.id)
    return report_switch(context, arguments.id, "disabled", path)


def add_schema(parser: argparse.ArgumentParser) -> None:
    """It takes no options of its own."""


async def run_schema(arguments: argparse.Namespace, context: CommandContext) -> int:
    from dari.bridge.config.schema import schema_text

    context.console.out(schema_text())
    return 0


COMMANDS = (
    Command(
        "prewarm",
        "Start a server and fetch its lists, so that the next call is fast.",
        add_prewarm,
        run_prewarm,
        description="Open a session with a server and fetch its lists: a local server is started, lists are cached. "
        "A server that failed (backoff, crash-loop) is tried at once. "
        "The session lasts as long as the daemon keeps it (idleExitMs).",
        examples=(
            ("prewarm --server fs", "one server"),
            ("prewarm --all", "every server that is ready, all at once"),
        ),
    ),
    Command(
        "daemon",
        "Start, stop or look at the daemon that keeps servers warm.",
        add_daemon,
        run_daemon,
        description="""\
The daemon keeps servers running between commands. Commands start it by themselves; without work it ends
after 30 minutes (DARI_BRIDGE_IDLE_S=seconds). One that `daemon start` was asked for stays until `daemon stop`.""",
        examples=(
            ("daemon start", "a daemon that stays"),
            ("daemon start --server fs", "… with this server started and its lists fetched"),
            ("daemon status", "which servers run, with how many sessions and calls"),
            ("daemon stop --server fs", "end one server; its next use starts it again"),
            ("daemon stop", "end the daemon and every server it runs"),
        ),
    ),
    Command(
        "rename",
        "give a server another name; sets that name it follow",
        add_rename,
        run_rename,
        examples=(
            ("rename filesystem files", "tools are then called files/read_file, files__read_file in the gateway"),
        ),
    ),
    Command(
        "remove",
        "take a server out of mcp.json",
        add_remove,
        run_remove,
        examples=(("remove time", "out of the file that counts; the rest of the file stays as it is"),),
    ),
    Command(
        "enable",
        "let a disabled server run again",
        add_enable,
        run_enable,
        examples=(("enable time", "from now on; nothing has to be restarted"),),
    ),
    Command(
        "disable",
        "keep a server in mcp.json, but never start or reach it",
        add_disable,
        run_disable,
        examples=(("disable time", "a running daemon ends it at once"),),
    ),
    Command(
        "schema",
        "print the JSON Schema of mcp.json, for editors and checks",
        add_schema,
        run_schema,
        examples=(
            ("schema > mcp.schema.json", 'name the file in "$schema" of mcp.json: editors then complete and check it'),
        ),
    ),
)
