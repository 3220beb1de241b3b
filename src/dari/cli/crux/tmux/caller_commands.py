"""Commands of `crux tmux` that run in the calling process: those about its terminal, files and programs, and all of
them where the daemon cannot run them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from dari.cli.crux.client import CruxClient
from dari.cli.crux.tmux.main import caller_folder
from dari.errors import DariError, InvalidInput, Unavailable
from dari.terminal.tmux.command_line import TmuxCall, parse_invocation
from dari.terminal.tmux.formats import expand
from dari.terminal.tmux.input_commands import BUFFERS, buffer_name, held_buffer
from dari.terminal.tmux.shim import Quiet, Run, Shim, TmuxCaller, command_table, run_calls, tmux_message
from dari.terminal.tmux.spawn_commands import session_name

STARTS = (
    "new-session",
    "start-server",
)


def flush(shim: Shim) -> None:
    """Print what was collected so far, before somebody else prints."""
    if shim.output:
        sys.stdout.write("".join(shim.output))
        sys.stdout.flush()
        shim.output.clear()


def make_commands(client: CruxClient, others: dict[str, Run]) -> dict[str, Run]:
    """The commands, by name; `others` are those that need nothing but the panes."""
    known = dict(others)

    def attach(shim: Shim, pane_id: str) -> None:
        from dari.cli.crux.main import main

        flush(shim)
        if main(["--socket", client.place.mcp_socket_text, "attach", "--pane-id", pane_id]):
            raise Quiet

    def attach_session(shim: Shim, call: TmuxCall) -> None:
        attach(shim, shim.find(call.get("t"), "session").pane.id.removeprefix("%"))

    def new_session(shim: Shim, call: TmuxCall) -> None:
        before = {session.id for session in shim.state.sessions}
        others["new-session"](shim, call)
        opened = next((each for each in shim.state.sessions if each.id not in before), None)
        if opened is None and call.has("A"):  # it was there
            opened = shim.find(f"={session_name(call.get('s') or '')}:", "session").session
        if opened is not None and not call.has("d"):
            attach(shim, opened.current.active.id.removeprefix("%"))

    def if_shell(shim: Shim, call: TmuxCall) -> None:
        """The second word, or the third, as a command of tmux; `-F`: the first word is a format and runs nothing."""
        import shlex

        from dari.terminal.tmux.command_line import parse_call, split_commands
        from dari.terminal.tmux.modifiers import is_true

        question = expand(call.words[0], shim.state.scope(shim.find(call.get("t"))))
        if call.has("F"):
            is_so = is_true(question)
        else:
            flush(shim)
            is_so = not subprocess.run(["/bin/sh", "-c", question], stdin=subprocess.DEVNULL, check=False).returncode
        chosen = call.words[1] if is_so else call.words[2] if len(call.words) > 2 else ""
        try:
            words = shlex.split(chosen)
        except ValueError:
            raise InvalidInput(f"syntax error: {chosen}") from None
        run_calls(shim, tuple(parse_call(each) for each in split_commands(words)), known)

    def kill_server(shim: Shim, call: TmuxCall) -> None:
        from dari.cli.crux.sessions import end_server

        end_server(client)

    known |= {
        "attach-session": attach_session,
        "if-shell": if_shell,
        "kill-server": kill_server,
        "list-clients": _list_clients,
        "load-buffer": _load_buffer,
        "new-session": new_session,
        "run-shell": _run_shell,
        "save-buffer": _save_buffer,
        "start-server": _start_server,
        "wait-for": _wait_for,
    }
    return known


def _list_clients(shim: Shim, call: TmuxCall) -> None:
    """Viewers have no names that a script could use."""


def _start_server(shim: Shim, call: TmuxCall) -> None:
    shim.read("crux:server/info")


def _wait_for(shim: Shim, call: TmuxCall) -> None:
    if call.has("L") or call.has("U"):
        raise InvalidInput("wait-for: crux tmux has no locks (-L, -U)", "wait for a signal (-S)")
    shim.call("crux:script/signal" if call.has("S") else "crux:script/wait", channel=call.words[0])


def _run_shell(shim: Shim, call: TmuxCall) -> None:
    if not call.words:
        return
    text = expand(call.words[0], shim.state.scope(shim.find(call.get("t"))))
    if call.has("b"):
        subprocess.Popen(["/bin/sh", "-c", text], start_new_session=True, stdin=subprocess.DEVNULL)
        return
    flush(shim)
    done = subprocess.run(["/bin/sh", "-c", text], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        shim.print(f"'{text}' returned {done.returncode}")
        raise Quiet


def _load_buffer(shim: Shim, call: TmuxCall) -> None:
    path = call.words[0]
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
    except OSError as error:
        raise InvalidInput(f"{error.strerror}: {path}") from None
    shim.call("crux:script/note", owner=BUFFERS, name=buffer_name(shim, call, is_new=True), text=text)


def _save_buffer(shim: Shim, call: TmuxCall) -> None:
    path, text = call.words[0], held_buffer(shim, call)
    if path == "-":
        shim.write(text)
        return
    try:
        mode = "a" if call.has("a") else "w"
        with open(path, mode, encoding="utf-8", opener=_open_no_link) as file:
            file.write(text)
    except OSError as error:
        raise InvalidInput(f"{error.strerror}: {path}") from None


def _open_no_link(path: str, flags: int) -> int:
    """A link that somebody left there would lead the text over another file."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def run_here(client: CruxClient, words: list[str]) -> int:
    shim = None
    try:
        calls = parse_invocation(words).calls or (TmuxCall("new-session", {}, ()),)
        if any(call.name in STARTS for call in calls):
            client = CruxClient(client.place)
        shim = Shim(_asking(client), _caller())
        table = command_table()
        run_calls(shim, calls, table | make_commands(client, table))
    except Unavailable:
        return _finish(shim, f"no server running on {client.place.mcp_socket_text}")
    except Quiet:
        return _finish(shim, None)
    except DariError as error:
        return _finish(shim, tmux_message(error))
    finally:
        client.close()
    flush(shim)
    return 0


def _finish(shim: Shim | None, message: str | None) -> int:
    if shim is not None:
        flush(shim)
    if message is not None:
        sys.stderr.write(message + "\n")
    return 1


def _caller() -> TmuxCaller:
    pane = os.environ.get("CRUX_PANE", "") or os.environ.get("TMUX_PANE", "")
    return TmuxCaller(pane, caller_folder(), os.environ.get("SHELL") or "/bin/sh")


def _asking(client: CruxClient) -> Any:
    def call(method: str, params: dict[str, Any]) -> Any:
        try:
            return client.call(method, **params)
        except DariError as error:
            if error.name != "needs_approval":
                raise
            from dari.cli.crux.approvals import settle

            return settle(client, method, params, error)

    return call
