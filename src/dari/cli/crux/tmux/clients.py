"""`attach-session`, `wait-for`, `run-shell`: what concerns the caller more than the panes."""

from __future__ import annotations

import sys

from dari.cli.crux.tmux.main import Quiet, Run, Shim
from dari.terminal.tmux.commands import Call
from dari.terminal.tmux.formats import expand


def attach_session(shim: Shim, call: Call) -> None:
    attach(shim, shim.find(call.get("t"), "session").pane.id.removeprefix("%"))


def attach(shim: Shim, pane_id: str) -> None:
    from dari.cli.crux.main import main

    if main(["--socket", shim.line.place.mcp_socket, "attach", "--pane-id", pane_id]):
        raise Quiet


def list_clients(shim: Shim, call: Call) -> None:
    """Viewers have no names that a script could use."""


def wait_for(shim: Shim, call: Call) -> None:
    name = call.words[0]
    if call.has("S"):
        shim.call("crux:script/signal", channel=name)
    else:
        shim.call("crux:script/wait", channel=name)


def run_shell(shim: Shim, call: Call) -> None:
    import subprocess

    if not call.words:
        return
    text = expand(call.words[0], shim.state.scope(shim.find(call.get("t"))))
    if call.has("b"):
        subprocess.Popen(["/bin/sh", "-c", text], start_new_session=True, stdin=subprocess.DEVNULL)
        return
    sys.stdout.flush()
    done = subprocess.run(["/bin/sh", "-c", text], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.stdout.write(f"'{text}' returned {done.returncode}\n")
        raise Quiet


def if_shell(shim: Shim, call: Call) -> None:
    """The second word, or the third, as a command of tmux; `-F`: the first word is a format and runs nothing."""
    import shlex
    import subprocess

    from dari.cli.crux.tmux.main import run_calls
    from dari.terminal.tmux.commands import parse_call, split_commands
    from dari.terminal.tmux.modifiers import is_true

    question = expand(call.words[0], shim.state.scope(shim.find(call.get("t"))))
    if call.has("F"):
        is_so = is_true(question)
    else:
        sys.stdout.flush()
        is_so = not subprocess.run(["/bin/sh", "-c", question], stdin=subprocess.DEVNULL, check=False).returncode
    chosen = call.words[1] if is_so else call.words[2] if len(call.words) > 2 else ""
    run_calls(shim, tuple(parse_call(words) for words in split_commands(shlex.split(chosen))))


COMMANDS: dict[str, Run] = {
    "attach-session": attach_session,
    "if-shell": if_shell,
    "list-clients": list_clients,
    "run-shell": run_shell,
    "wait-for": wait_for,
}
