"""One invocation of `tmux`, run against panes of ours: in the daemon for speed, in the command where it must be there.

`call` asks the terminal's methods; what tmux would print is collected, and the caller's folder, shell and pane are
those of the process that was started, wherever this runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dari.errors import Conflict, DariError, InvalidInput, NotFound
from dari.terminal.tmux.command_line import TmuxCall
from dari.terminal.tmux.formats import expand
from dari.terminal.tmux.state import TmuxState
from dari.terminal.tmux.targets import Kind, ResolvedTarget

CallMethod = Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class TmuxCaller:
    """Where `tmux` was called."""

    pane: str = ""
    cwd: str = "/"
    shell: str = "/bin/sh"


class Quiet(Exception):
    """Failed, and tmux would say nothing."""


class Shim:
    def __init__(self, call: CallMethod, caller: TmuxCaller) -> None:
        self._call = call
        self.caller = caller
        self.output: list[str] = []
        self.changes = 0
        """How many calls have changed something."""
        self._state: TmuxState | None = None

    @property
    def state(self) -> TmuxState:
        if self._state is None:
            overview, notes = self.read("crux:window/list"), self.read("crux:script/notes")
            self._state = TmuxState(overview, notes, self.caller.pane)
        return self._state

    def read(self, method: str, **params: Any) -> Any:
        return self._call(method, {name: value for name, value in params.items() if value is not None})

    def call(self, method: str, **params: Any) -> Any:
        """Ask for a change; what was known may be old afterwards."""
        self._state = None
        answer = self.read(method, **params)
        self.changes += 1
        return answer

    def find(self, target: str | None, kind: Kind = "pane") -> ResolvedTarget:
        if not self.state.sessions:
            raise NotFound(f"can't find {kind}: {target}" if target else "no current target")
        return self.state.targets().find(target, kind)

    def place_of(self, pane_id: str) -> ResolvedTarget:
        return self.find(f"%{pane_id}")

    def write(self, text: str) -> None:
        self.output.append(text.encode("utf-8", "replace").decode())

    def print(self, text: str) -> None:
        self.write(text + "\n")

    def print_format(self, text: str, place: ResolvedTarget, *, has_time: bool = False) -> None:
        self.print(expand(text, self.state.scope(place), has_time=has_time))


Run = Callable[[Shim, TmuxCall], None]


def command_table() -> dict[str, Run]:
    """The commands that need nothing but the panes."""
    from dari.terminal.tmux import input_commands, layout_commands, list_commands, option_commands, spawn_commands

    table: dict[str, Run] = {}
    for module in (input_commands, layout_commands, list_commands, option_commands, spawn_commands):
        table |= module.COMMANDS
    return table


def run_calls(shim: Shim, calls: tuple[TmuxCall, ...], table: Mapping[str, Run]) -> None:
    """One after the other, until one fails."""
    for call in calls:
        if call.name not in table:
            raise InvalidInput(f"{call.name}: crux tmux does not have this command", "crux tmux --help")
        table[call.name](shim, call)


def tmux_message(error: DariError) -> str:
    """What tmux says of a failure."""
    if isinstance(error, Conflict) and "too few to split" in error.message:
        return "no space for new pane"
    return error.message
