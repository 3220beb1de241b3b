"""The output of a command as it comes, and its end; Ctrl-C and a reader that has seen enough are passed on to it."""

from __future__ import annotations

import sys
import time

from dari.cli.crux.options import FAILED, STILL_RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dari.cli.crux.options import Crux

ASK_S = 300.0
AFTER_S = 2.0
"""How long the rest of the output of an interrupted command is waited for."""
INTERRUPTED = 130
_CONTROLS = {code: f"\\x{code:02x}" for code in range(0x7F, 0xA0)}


class Following:
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

    def wait(self) -> int:
        """Until it ends, then all of it as one value."""
        try:
            while True:
                done = self._crux.call("crux:command/wait", command_id=self._command, timeout_s=self._patience())
                if done["status"] != "running" or self._is_late:
                    break
        except KeyboardInterrupt:
            self._interrupt()
            raise
        self._crux.out.show(done)
        return STILL_RUNNING if done["status"] == "running" else _exit_code(done["exit_code"])

    def print(self) -> int:
        """Line by line, until it ends."""
        try:
            code = self._follow()
        except KeyboardInterrupt:
            self._interrupt()
            self._deadline = time.monotonic() + AFTER_S
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
            told = self._crux.call(
                "crux:command/follow",
                command_id=self._command,
                mark=self._mark,
                seen=self._seen,
                timeout_s=self._patience(),
            )
            is_news = told["seen"] != self._seen or not told["is_running"]
            self._mark, self._seen = told["mark"], told["seen"]
            if told["lost_bytes"]:
                self._crux.out.note(f"[{told['lost_bytes']} bytes are left out here]")
            if is_news:
                self._show(told["text"], told["unfinished"])
            if not told["is_running"]:
                return _exit_code(told["exit_code"])
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

        from dari.cli.crux.output import width

        text = text.translate(_CONTROLS).replace("\t", " ")
        try:
            room = os.get_terminal_size(1).columns - 1
        except OSError:
            room = 79
        while text and width(text) > max(1, room):
            text = text[1:]
        return text

    def _interrupt(self) -> None:
        self._crux.line.close()  # the answer that was waited for comes no more on this one
        self._crux.call("crux:command/interrupt", command_id=self._command)

    def _tell_running(self, what: str) -> None:
        self._crux.out.note(f"{what} in pane {self._pane} as {self._command}")

    @property
    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _patience(self) -> float:
        return ASK_S if self._deadline is None else min(ASK_S, max(0.0, self._deadline - time.monotonic()))


def _exit_code(code: int | None) -> int:
    return FAILED if code is None else code % 256 if code >= 0 else 128 - code
