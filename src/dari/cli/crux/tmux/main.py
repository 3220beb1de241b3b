"""`crux tmux …`: the commands that scripts and agent teams ask of tmux, answered by panes of ours.

The daemon runs them, so that a call costs an interpreter and one question. What concerns the caller more than the
panes (its files, its terminal, its programs, a server that has to be started) is run here: `local.py`.
"""

from __future__ import annotations

import os
import sys

from dari.cli.crux.client import CruxClient
from dari.errors import DariError
from dari.terminal.paths import CruxPaths

VERSION = "3.3a"
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


def run_tmux(words: list[str], socket: str = "") -> int:
    if words[:1] in (["--help"], ["-h"], ["help"]):
        sys.stdout.write(HELP)
        return 0
    if words == ["-V"]:
        sys.stdout.write(f"tmux {VERSION}\n")
        return 0
    if words[:1] in (["--install"], ["--run"]):
        return _offer(words[0], words[1:], socket)
    client = CruxClient(CruxPaths.of_environment(socket), starts=False)
    try:
        code = run_in_daemon(client, words)
        if code is not None:
            return code
        from dari.cli.crux.tmux.caller_commands import run_here

        return run_here(client, words)
    finally:
        client.close()


def run_in_daemon(client: CruxClient, words: list[str]) -> int | None:
    """The exit code; None when the command has to be run here."""
    pane = os.environ.get("CRUX_PANE", "") or os.environ.get("TMUX_PANE", "")
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        answer = client.call("crux:tmux/run", words=words, pane=pane, cwd=caller_folder(), shell=shell)
    except (DariError, OSError):  # no daemon, or one of an older version
        return None
    if answer["is_for_caller"]:
        return None
    if answer["output"]:
        sys.stdout.write(answer["output"])
        sys.stdout.flush()
    sys.stderr.write(answer["complaint"])
    return int(answer["exit_code"])


def caller_folder() -> str:
    """As tmux takes it: the home of a caller whose folder was removed."""
    try:
        return os.getcwd()
    except OSError:
        return os.path.expanduser("~")


def _offer(flag: str, words: list[str], socket: str) -> int:
    from dari.cli.crux.options import CruxOutput
    from dari.cli.crux.tmux.shims import install, run_inside

    client = CruxClient(CruxPaths.of_environment(socket), starts=False)
    try:
        if flag == "--run":
            run_inside(client, words)
        path = install(words[0] if words else os.path.join(client.place.run_dir_text, "bin"), client.place)
    except DariError as error:
        CruxOutput(as_json=False).error(error)
        return 2 if error.name == "not_found" else 1
    finally:
        client.close()
    sys.stdout.write(f"{path}\nfirst on the PATH of a program: PATH={os.path.dirname(path)}:$PATH PROGRAM\n")
    return 0
