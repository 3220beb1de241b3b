"""Commands of `crux tmux` that are run in the calling process, all of them where the daemon cannot."""

from __future__ import annotations

import os
import sys
from typing import Any

from dari.cli.crux.line import Line
from dari.cli.crux.tmux import caller_commands
from dari.errors import DariError, Unavailable
from dari.terminal.tmux.command_line import TmuxCall, parse_invocation
from dari.terminal.tmux.shim import Quiet, Shim, TmuxCaller, command_table, run_calls, tmux_message


def run_here(line: Line, words: list[str]) -> int:
    shim = None
    try:
        calls = parse_invocation(words).calls or (TmuxCall("new-session", {}, ()),)
        if any(call.name in caller_commands.STARTS for call in calls):
            line = Line(line.place)
        shim = Shim(_asking(line), _caller())
        table = command_table()
        run_calls(shim, calls, table | caller_commands.make_commands(line, table))
    except Unavailable:
        return _finish(shim, f"no server running on {line.place.mcp_socket_text}")
    except Quiet:
        return _finish(shim, None)
    except DariError as error:
        return _finish(shim, tmux_message(error))
    finally:
        line.close()
    caller_commands.flush(shim)
    return 0


def _finish(shim: Shim | None, message: str | None) -> int:
    if shim is not None:
        caller_commands.flush(shim)
    if message is not None:
        sys.stderr.write(message + "\n")
    return 1


def _caller() -> TmuxCaller:
    pane = os.environ.get("CRUX_PANE", "") or os.environ.get("TMUX_PANE", "")
    return TmuxCaller(pane, os.getcwd(), os.environ.get("SHELL") or "/bin/sh")


def _asking(line: Line) -> Any:
    def call(method: str, params: dict[str, Any]) -> Any:
        try:
            return line.call(method, **params)
        except DariError as error:
            if error.name != "needs_approval":
                raise
            from dari.cli.crux.consent import settle

            return settle(line, method, params, error)

    return call
