"""`crux tmux …`: the commands that scripts and agent teams ask of tmux, answered by panes of ours.

Read as tmux 3.3a reads them, printed as it prints; a failure is its message on stderr and exit code 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from dari.cli.crux.line import Line
from dari.cli.crux.line import Place as Files
from dari.cli.crux.tmux.state import VERSION, State
from dari.errors import Conflict, DariError, InvalidInput, NotFound, Unavailable
from dari.terminal.tmux.commands import Call, parse_invocation
from dari.terminal.tmux.formats import expand
from dari.terminal.tmux.targets import Kind, Place

HELP = """\
usage: crux tmux COMMAND [flags] …
       crux tmux --run PROGRAM …       run a program in this pane that finds itself inside tmux
       crux tmux --install [DIR]       write a program `tmux` that is this one (default: bin beside the socket)

Takes the place of tmux for scripts: split-window, send-keys, capture-pane, list-panes, display-message, select-pane,
kill-pane, resize-pane, respawn-pane, select-layout, set-option, new-session, new-window, list-windows, … of tmux 3.3a.

examples:
  crux tmux new-session -d -s work
  crux tmux split-window -h -t work -P -F '#{pane_id}'
  crux tmux send-keys -t %2 'make test' Enter
  crux tmux capture-pane -p -t %2 -S -100
  crux tmux list-panes -F '#{pane_id} #{pane_current_command}'

An agent that opens panes for its team: crux split-pane -- crux tmux --run claude

Sessions of tmux are windows of crux, its windows are tabs.
"""

Run = Callable[["Shim", Call], None]


class Shim:
    """One invocation: the line to the server, the state as last told, and stdout."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._state: State | None = None

    @property
    def state(self) -> State:
        if self._state is None:
            here = os.environ.get("CRUX_PANE", "") or os.environ.get("TMUX_PANE", "")
            self._state = State(self.line.call("crux:window/list"), self.line.call("crux:script/notes"), here)
        return self._state

    def call(self, method: str, **params: Any) -> Any:
        """Ask the server; what was known may be old afterwards."""
        self._state = None
        try:
            return self.line.call(method, **params)
        except DariError as error:
            if error.name != "needs_approval":
                raise
            from dari.cli.crux.consent import settle

            return settle(self.line, method, params, error)

    def find(self, target: str | None, kind: Kind = "pane") -> Place:
        if not self.state.sessions:
            raise NotFound(f"can't find {kind}: {target}" if target else "no current target")
        return self.state.targets().find(target, kind)

    def place_of(self, pane_id: str) -> Place:
        return self.find(f"%{pane_id}")

    def print(self, text: str) -> None:
        sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")

    def print_format(self, text: str, place: Place, *, has_time: bool = False) -> None:
        self.print(expand(text, self.state.scope(place), has_time=has_time))


def run_tmux(words: list[str], socket: str = "") -> int:
    if words[:1] in (["--help"], ["-h"], ["help"]):
        sys.stdout.write(HELP)
        return 0
    from dari.cli.crux.tmux import programs

    if words[:1] in (["--install"], ["--run"]):
        return _offer(words[0], words[1:], socket)
    line = Line(Files(socket), starts=False)
    try:
        invocation = parse_invocation(words)
        if "V" in invocation.flags:
            sys.stdout.write(f"tmux {VERSION}\n")
            return 0
        calls = invocation.calls or (Call("new-session", {}, ()),)
        if any(call.name in programs.STARTS for call in calls):
            line = Line(line.place)
        run_calls(Shim(line), calls)
        sys.stdout.flush()
        return 0
    except Unavailable:
        return _complain(f"no server running on {line.place.mcp_socket}")
    except Quiet:
        return 1
    except Conflict as error:
        return _complain("no space for new pane" if "too few to split" in error.message else error.message)
    except DariError as error:
        return _complain(error.message)
    finally:
        line.close()


def run_calls(shim: Shim, calls: tuple[Call, ...]) -> None:
    """One after the other, until one fails."""
    from dari.cli.crux.tmux import clients, looking, options, places, programs, typing

    table: dict[str, Run] = {}
    for module in (clients, looking, options, places, programs, typing):
        table |= module.COMMANDS
    for call in calls:
        if call.name not in table:
            raise InvalidInput(f"{call.name}: crux tmux does not have this command", "crux tmux --help")
        table[call.name](shim, call)


def _offer(flag: str, words: list[str], socket: str) -> int:
    from dari.cli.crux.output import Output
    from dari.cli.crux.tmux.shims import install, run_inside

    line = Line(Files(socket), starts=False)
    try:
        if flag == "--run":
            run_inside(line, words)
        path = install(words[0] if words else os.path.join(line.place.run_dir, "bin"))
    except DariError as error:
        Output(as_json=False).tell(error)
        return 2 if error.name == "not_found" else 1
    finally:
        line.close()
    sys.stdout.write(f"{path}\nfirst on the PATH of a program: PATH={os.path.dirname(path)}:$PATH PROGRAM\n")
    return 0


class Quiet(Exception):
    """Failed, and tmux would say nothing."""


def _complain(message: str) -> int:
    sys.stdout.flush()
    sys.stderr.write(message + "\n")
    return 1
