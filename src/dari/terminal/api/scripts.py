"""What scripts ask of a multiplexer such as tmux: panes at a given place, notes, signals, and `crux:tmux/run`.

`crux:tmux/run` runs a whole tmux command line in the daemon, which saves a round trip per question.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from dari.daemon.methods import Method, method_table
from dari.daemon.stub import expose
from dari.errors import Conflict, DariError, NeedsApproval, NotFound
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.commands import Success
from dari.terminal.api.panes import PaneInfo, describe_pane
from dari.terminal.layout.cells import Orientation
from dari.terminal.multiplexer import Change, Multiplexer, PaneGone
from dari.terminal.panes.events import Exited
from dari.terminal.panes.pane import Pane
from dari.terminal.tmux.command_line import TmuxCall, parse_invocation
from dari.terminal.window_manager import PanePlacement, Where

MAX_NOTE_CHARS = 8 << 20
MAX_CHANNELS = 1000


class ScriptsApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._notes: dict[str, dict[str, str]] = {}
        self._transient: set[str] = set()
        self._channels: dict[str, asyncio.Event] = {}
        self._waiting: Counter[str] = Counter()
        self._closing: set[asyncio.Task[None]] = set()
        multiplexer.changes.subscribe(self._hear, PaneGone, Exited)

    @expose("crux:pane/open", "control", is_slow=True)
    @approvable
    async def open_pane(
        self,
        argv: list[str] | None = None,
        cwd: str = "",
        env: dict[str, str] | None = None,
        target: str = "",
        where: Where = "split",
        direction: Orientation = "vertical",
        size: int = 0,
        is_before: bool = False,
        is_full: bool = False,
        focus: bool = True,
        title: str = "",
        cols: int = 0,
        rows: int = 0,
    ) -> PaneInfo:
        """Open a pane exactly there or not at all; it goes away when its program ends, as panes of tmux do."""
        words = argv or []
        place = cwd or (self._all.find(target).cwd() if target or self._all.focused else self._all.start_place)
        folder = os.path.abspath(os.path.expanduser(place))
        self._all.guard.check_opening(shlex.join(words), folder, env=env, approved=approved_message())
        spot = PanePlacement(target, direction, where, size or None, is_before, is_full, focus, title, is_strict=True)
        pane = await self._all.open(spot=spot, cwd=folder, command=words, env=env)
        window, _ = self._all.windows.place(pane.id)
        if cols or rows:
            self._all.windows.resize_window(window.id, cols or window.cols, rows or window.rows)
            self._all.fit()
        info = describe_pane(self._all, pane)
        self._transient.add(pane.id)
        self._close_ended(pane.id)
        return info

    @expose("crux:pane/respawn", "control", is_slow=True)
    @approvable
    async def respawn_pane(
        self,
        pane_id: str = "",
        argv: list[str] | None = None,
        cwd: str = "",
        env: dict[str, str] | None = None,
        force: bool = False,
    ) -> PaneInfo:
        """Another program in the same place; with `force` what runs there is ended first."""
        pane = self._all.find(pane_id)
        words = argv or ()
        self._all.guard.check_opening(shlex.join(words), cwd or pane.cwd(), env=env, approved=approved_message())
        was_transient = pane.id in self._transient
        self._transient.discard(pane.id)  # the end of the old program is not the end of the pane
        try:
            new = await self._all.respawn(pane.id, command=words, cwd=cwd, env=env, force=force)
        finally:
            if was_transient and pane.id in self._all.panes:
                self._transient.add(pane.id)
                self._close_ended(pane.id)
        return describe_pane(self._all, new)

    @expose("crux:script/notes", "read")
    async def all_notes(self) -> dict[str, dict[str, str]]:
        """What is kept, by owner: options of panes, tabs and windows, buffers."""
        return self._notes

    @expose("crux:script/note", "control")
    async def keep_note(self, owner: str, name: str, text: str | None = None) -> Success:
        """Keep a text for scripts, or forget it when none is given."""
        notes = self._notes.setdefault(owner, {})
        notes.pop(name, None)
        if text is not None:
            kept = sum(len(each) for owned in self._notes.values() for each in owned.values())
            if kept + len(text) > MAX_NOTE_CHARS:
                raise Conflict(
                    f"buffers hold {kept} characters, and {len(text)} more would be too many", "delete buffers"
                )
            notes[name] = text
        return Success()

    @expose("crux:script/signal", "control")
    async def signal(self, channel: str) -> Success:
        """Wake who waits on the channel, or the next one who will."""
        self._channel(channel).set()
        return Success()

    @expose("crux:script/wait", "read", ends_with_caller=True)
    async def wait(self, channel: str) -> Success:
        """Return once the channel was signalled."""
        event = self._channel(channel)
        self._waiting[channel] += 1
        try:
            await event.wait()
        except asyncio.CancelledError:
            if self._waiting[channel] == 1 and not event.is_set():
                self._forget(channel, event)
            raise
        finally:
            self._waiting[channel] -= 1
            if not self._waiting[channel]:
                del self._waiting[channel]
        self._forget(channel, event)
        return Success()

    def _channel(self, name: str) -> asyncio.Event:
        if len(self._channels) >= MAX_CHANNELS and name not in self._channels:
            unheard = next((each for each in self._channels if each not in self._waiting), None)
            if unheard is None:
                raise Conflict(f"{MAX_CHANNELS} channels are waited for", "signal some of them")
            del self._channels[unheard]  # the oldest signal that nobody came for
        return self._channels.setdefault(name, asyncio.Event())

    def _forget(self, channel: str, event: asyncio.Event) -> None:
        if self._channels.get(channel) is event:
            del self._channels[channel]

    def _hear(self, change: Change) -> None:
        if isinstance(change, PaneGone):
            self._transient.discard(change.pane_id)
            self._notes.pop(f"%{change.pane_id}", None)
        else:
            self._close_ended(change.pane_id)

    def _close_ended(self, pane_id: str) -> None:
        pane = self._all.panes.get(pane_id)
        if pane is None or pane.is_alive or pane_id not in self._transient:
            return
        kept = self._notes.get(f"%{pane_id}", {}).get("remain-on-exit", "off")
        if kept == "on" or (kept == "failed" and pane.exit_code):
            return
        closing = asyncio.get_running_loop().create_task(self._close(pane))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, pane: Pane) -> None:
        if self._all.panes.get(pane.id) is pane and not pane.is_alive:  # else it was respawned meanwhile
            with suppress(NotFound):
                await self._all.close(pane.id, force=True)


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
