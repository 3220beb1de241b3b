"""`crux:tmux/run`: a command line of tmux, run where the panes are. One question instead of several."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from dari.daemon.methods import Method, method_table
from dari.daemon.stub import expose
from dari.errors import DariError, NeedsApproval
from dari.terminal.tmux.command_line import TmuxCall, parse_invocation


class TmuxResult(Struct, frozen=True):
    """What a command of tmux printed; `is_for_caller`: nothing was done, the caller has to run it."""

    output: str = ""
    complaint: str = ""
    exit_code: int = 0
    is_for_caller: bool = False


_FOR_CALLER = TmuxResult(is_for_caller=True)


class TmuxApi:
    """Runs commands with the daemon's own methods, so every rule of theirs holds for scripts, too."""

    def __init__(self) -> None:
        self._methods = method_table(())

    def use(self, methods: Iterable[Method]) -> None:
        """What the commands may call."""
        self._methods = method_table(methods)

    @expose("crux:tmux/run", "admin", is_slow=True)
    async def run(self, words: list[str], pane: str = "", cwd: str = "/", shell: str = "/bin/sh") -> TmuxResult:
        """Run `tmux WORDS…` for a caller in this pane and folder; some commands it has to run itself."""
        from dari.terminal.tmux.shim import TmuxCaller

        try:
            calls = parse_invocation(words).calls
        except DariError as error:
            return TmuxResult(complaint=f"{error.message}\n", exit_code=1)
        loop = asyncio.get_running_loop()

        def call(method: str, params: dict[str, Any]) -> Any:
            asked = self._methods[method].call(msgspec.json.encode(params))
            return msgspec.to_builtins(asyncio.run_coroutine_threadsafe(_awaited(asked), loop).result())

        # The commands are plain functions: in a thread they can wait for the loop.
        return await asyncio.to_thread(_run, calls, call, TmuxCaller(pane, cwd, shell))


async def _awaited(asked: Any) -> Any:
    return await asked


def _run(calls: tuple[TmuxCall, ...], call: Any, caller: Any) -> TmuxResult:
    from dari.terminal.tmux.shim import Quiet, Shim, command_table, run_calls, tmux_message

    table = command_table()
    is_ours = all(each.name in table and (each.name != "new-session" or each.has("d")) for each in calls)
    if not calls or not is_ours:
        return _FOR_CALLER
    shim = Shim(call, caller)
    complaint, exit_code = "", 1
    try:
        run_calls(shim, calls, table)
        exit_code = 0
    except Quiet:
        pass
    except NeedsApproval as error:
        if not shim.changes:  # nothing has happened: the caller may have a person to ask
            return _FOR_CALLER
        complaint = f"{error.message}\n"
    except DariError as error:
        complaint = f"{tmux_message(error)}\n"
    return TmuxResult("".join(shim.output), complaint, exit_code)
