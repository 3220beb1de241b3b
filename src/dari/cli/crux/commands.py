"""`crux exec | wait | send-text | send-keys`, and the output of a command as it comes."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time

from dari.cli.crux.options import FAILED, OK, STILL_RUNNING, Crux, add_pane, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


STARTS = (
    "exec",
    "send-text",
    "send-keys",
)
EXAMPLES = {
    "exec": """
crux exec 'make test'                          one word is a line of shell, as it stands
crux exec -t server -- git log -1 'a file'     several words are quoted for the shell
crux exec --timeout 600 'cargo build' || echo "exit code $?"
crux exec 'journalctl -f' | grep -m1 error     stops when its reader has seen enough
crux exec --json 'ls | wc -l' | jq .exit_code

Lines are printed as they come. Ctrl-C interrupts the command in its pane; what it asks is answered there
(crux attach, crux send-text).
exit codes: the command's own; 124 when time is over (it goes on), 125 when it could not be run, 130 after Ctrl-C
""",
    "wait": """
crux send-text -t 2 --enter 'npm start'; crux wait -t 2 'listening on port (\\d+)'
crux wait -t 2 --text '$ '                     no regular expression
crux wait -t 2 --new 'GET /'                   only what comes from now on
crux wait -t 2 --seen 'ready'                  anything that the pane has printed
crux wait -t 2 --exit                          until its program ends; exits with its exit code

exit codes: 0 it came, 3 the program ended before, 124 time is over
""",
    "send-text": """
crux send-text 'git status'                    at the cursor; nothing runs yet
crux send-text --enter 'git status'            and Enter
git diff | crux send-text -t editor            from stdin, pasted as one piece
crux send-text --no-paste 'yes\n'              typed: a line end is Enter (write it with $'…\\n')
""",
    "send-keys": """
crux send-keys C-c
crux send-keys -t vim Escape ':wq' Enter
crux send-keys Up Up Enter
crux send-keys --literal 'C-c is three letters'

names: Enter Tab Escape Space Backspace Up Down Left Right Home End PageUp PageDown Insert Delete F1…F25,
with C- (Ctrl), M- (Alt), S- (Shift); anything else is typed as it is
""",
}


def add_exec(parser: argparse.ArgumentParser) -> None:
    parser.usage = "crux exec [options] 'LINE OF SHELL' | -- WORD …"
    add_pane(parser)
    parser.add_argument("--timeout", metavar="S", type=seconds, help="seconds to wait (default: until it ends)")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="a line of shell, or words")


def add_wait(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--timeout", metavar="S", type=seconds, default=30.0, help="seconds (default: %(default)g)")
    parser.add_argument("--text", action="store_true", help="PATTERN is text, and no regular expression")
    parser.add_argument("--since", metavar="MARK", type=int, help="from this `mark` of an earlier answer on")
    parser.add_argument("--seen", action="store_true", help="also what was printed before, from the start of the pane")
    parser.add_argument("--new", action="store_true", help="only what comes after this (default: after the last input)")
    parser.add_argument("--exit", action="store_true", help="wait for the end of the pane's program")
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", help="what to wait for")


def run_exec(arguments: argparse.Namespace, crux: Crux) -> int:
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not words:
        from dari.errors import InvalidInput

        raise InvalidInput("no command was given", "crux exec 'make test'")
    command = words[0] if len(words) == 1 else shlex.join(words)
    pane_id = crux.pane(arguments)
    with HeldInterrupt() as held:
        begun = crux.call("crux:command/start", command=command, pane_id=pane_id)
        following = CommandFollower(crux, begun, arguments.timeout)
        return following.wait(held) if crux.out.as_json else following.print(held)


def run_wait(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.errors import InvalidInput

    pane_id = crux.pane(arguments)
    if arguments.exit:
        code = crux.call("crux:pane/wait-exit", pane_id=pane_id, timeout_s=arguments.timeout)
        crux.out.show({"exit_code": code})
        if code is None and not crux.out.as_json:
            crux.out.error(
                InvalidInput(f"its program still runs after {arguments.timeout:g} s", "give it more --timeout")
            )
        return STILL_RUNNING if code is None else code % 256 if code >= 0 else 128 - code
    if arguments.pattern is None:
        raise InvalidInput("no pattern was given", "crux wait 'listening on'")
    since = 0 if arguments.seen else arguments.since
    if arguments.new:
        since = crux.call("crux:pane/info", pane_id=pane_id)["mark"]
    found = crux.call(
        "crux:pane/wait-for",
        pattern=arguments.pattern,
        pane_id=pane_id,
        is_regex=not arguments.text,
        timeout_s=arguments.timeout,
        since=since,
    )
    crux.out.show(found, [found["text"]] if found["matched"] else [])
    if found["matched"]:
        return OK
    is_over = found["reason"] == "timeout"
    if not crux.out.as_json:
        said = (
            f"did not come within {arguments.timeout:g} s"
            if is_over
            else f"did not come: the program {found['reason']}"
        )
        crux.out.error(InvalidInput(f"{arguments.pattern!r} {said}", "crux get-text shows what the pane printed"))
    return STILL_RUNNING if is_over else FAILED


def add_send_text(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--no-paste", action="store_true", help="type it: each line end is Enter")
    parser.add_argument("--enter", action="store_true", help="press Enter after it")
    parser.add_argument("text", metavar="TEXT", nargs="?", help="default: what comes from stdin")


def add_send_keys(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--literal", "-l", action="store_true", help="no names: every character as it is")
    parser.add_argument("keys", metavar="KEY", nargs="+", help="a key, a chord, or text")


def run_send_text(arguments: argparse.Namespace, crux: Crux) -> int:
    text = sys.stdin.read() if arguments.text is None else arguments.text
    sent = crux.call(
        "crux:pane/send-text",
        text=text,
        pane_id=crux.pane(arguments),
        paste=not arguments.no_paste,
        enter=arguments.enter,
    )
    crux.out.show(sent)
    return OK


def run_send_keys(arguments: argparse.Namespace, crux: Crux) -> int:
    if arguments.literal:
        keys, is_literal = " ".join(arguments.keys), True
    else:
        from dari.terminal.engine.keys import parse_keys, spell_keys

        keys, is_literal = spell_keys(parse_keys(*arguments.keys))
    sent = crux.call("crux:pane/send-keys", keys=keys, pane_id=crux.pane(arguments), literal=is_literal)
    crux.out.show(sent)
    return OK


POLL_S = 300.0


INTERRUPTED_WAIT_S = 2.0
"""How long the rest of the output of an interrupted command is waited for."""


INTERRUPTED = 130


_CONTROLS = {code: f"\\x{code:02x}" for code in range(0x7F, 0xA0)}


class HeldInterrupt:
    """Until `release`, the first Ctrl-C waits: a command is being typed, and can be interrupted once it has an id."""

    def __init__(self) -> None:
        self._is_pressed = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """What was refused was not started: Ctrl-C has nothing more to wait for."""
        if kind is None or issubclass(kind, Exception):
            self.release()

    def release(self) -> None:
        """Ctrl-C ends what runs, also the one that was pressed meanwhile."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
        if self._is_pressed:
            self._is_pressed = False
            raise KeyboardInterrupt

    def _press(self, *_: object) -> None:
        if self._is_pressed:
            self._is_pressed = False
            raise KeyboardInterrupt
        self._is_pressed = True


class CommandFollower:
    """Of one command that was started; `timeout_s` None: until it ends."""

    def __init__(self, crux: Crux, begun: dict[str, Any], timeout_s: float | None) -> None:
        self._crux = crux
        self._command: str = begun["command_id"]
        self._pane: str = begun["pane_id"]
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._mark = self._seen = 0
        self._is_terminal = sys.stdout.isatty()
        self._shown = self._rest = ""
        self._is_open = False  # the last line that was printed has no end

    def wait(self, held: HeldInterrupt) -> int:
        """Until it ends, then all of it as one value."""
        try:
            held.release()
            while True:
                done = self._crux.call("crux:command/wait", command_id=self._command, timeout_s=self._patience())
                if done["status"] != "running" or self._is_late:
                    break
        except KeyboardInterrupt:
            self._interrupt()
            raise
        self._crux.out.show(done)
        return STILL_RUNNING if done["status"] == "running" else _exit_code(done["exit_code"])

    def print(self, held: HeldInterrupt) -> int:
        """Line by line, until it ends."""
        try:
            held.release()
            code = self._follow()
        except KeyboardInterrupt:
            self._interrupt()
            self._deadline = time.monotonic() + INTERRUPTED_WAIT_S
            is_over = self._follow() is not None
            self._end_line()
            if not is_over:
                self._tell_running("it goes on after ^C")
            return INTERRUPTED
        except BrokenPipeError:  # as a program that writes to a pipe that nobody reads
            self._interrupt()
            raise
        self._end_line()
        if code is None:
            self._tell_running("still running")
            return STILL_RUNNING
        return code

    def _follow(self) -> int | None:
        """The exit code; None when time is over."""
        while True:
            update = self._crux.call(
                "crux:command/follow",
                command_id=self._command,
                mark=self._mark,
                seen=self._seen,
                timeout_s=self._patience(),
            )
            is_news = update["seen"] != self._seen or not update["is_running"]
            self._mark, self._seen = update["mark"], update["seen"]
            if update["lost_bytes"]:
                self._crux.out.note(f"[{update['lost_bytes']} bytes are left out here]")
            if is_news:
                self._show(update["text"], update["unfinished"])
            if not update["is_running"]:
                return _exit_code(update["exit_code"])
            if self._is_late:
                return None

    def _show(self, text: str, unfinished: str) -> None:
        """A line without its end is seen on a terminal, where it can be drawn again; elsewhere it waits for it."""
        if self._is_terminal:
            text, unfinished = text.translate(_CONTROLS), self._cut(unfinished)
            if text or unfinished != self._shown:
                self._crux.out.write(("\r\x1b[K" if self._shown else "") + text + unfinished)
                self._shown = unfinished
        else:
            self._rest = unfinished
            if text:
                self._crux.out.write(text)
        if text:
            self._is_open = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._is_open or self._shown or self._rest:
            self._crux.out.write(self._rest + "\n")
            self._is_open, self._shown, self._rest = False, "", ""

    def _cut(self, text: str) -> str:
        """One row of the terminal at most: only that can be taken back."""
        import os

        from dari.text.width import text_width

        text = text.translate(_CONTROLS).replace("\t", " ")
        try:
            room = os.get_terminal_size(1).columns - 1
        except OSError:
            room = 79
        while text and text_width(text) > max(1, room):
            text = text[1:]
        return text

    def _interrupt(self) -> None:
        self._crux.client.close()  # the answer that was waited for comes no more on this one
        self._crux.call("crux:command/interrupt", command_id=self._command)

    def _tell_running(self, what: str) -> None:
        self._crux.out.note(f"{what} in pane {self._pane} as {self._command}")

    @property
    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _patience(self) -> float:
        return POLL_S if self._deadline is None else min(POLL_S, max(0.0, self._deadline - time.monotonic()))


def _exit_code(code: int | None) -> int:
    return FAILED if code is None else code % 256 if code >= 0 else 128 - code
