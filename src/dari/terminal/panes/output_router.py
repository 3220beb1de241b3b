"""Output on its way in: to the screen, commands, prompts and waiters; the replies of the terminal (DA, DSR and others)
go to the program that asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dari.terminal.engine.engine import Engine
from dari.terminal.panes.commands import CommandLog
from dari.terminal.panes.expect import OutputExpect
from dari.terminal.panes.prompt_line import PromptLine
from dari.terminal.panes.pty import Pty
from dari.terminal.panes.shell_integration import NUMBER

_WORD = b"\x1b]%d;" % NUMBER


class OutputRouter:
    """A shell's words cut what is printed into the output of commands, prompts, and the line at a prompt."""

    def __init__(self, engine: Engine, log: CommandLog, line: PromptLine, watch: OutputExpect) -> None:
        self._engine = engine
        self._log = log
        self._line = line
        self._watch = watch
        self._chunk = b""
        self._chunk_start = 0
        self._taken = 0

    @property
    def is_feeding(self) -> bool:
        return bool(self._chunk)

    def feed(self, data: bytes) -> None:
        self._chunk, self._chunk_start, self._taken = data, self._engine.consumed, 0
        self._engine.feed(data)
        self._take(len(data))
        self._chunk = b""

    def hear(self, number: int, payload: bytes) -> None:
        """The engine has come to a word of the shell."""
        if number != NUMBER or not self._log.has_shell:
            return
        end = self._engine.consumed - self._chunk_start
        begin = self._chunk.rfind(_WORD, self._taken, end)  # before this chunk when it was cut in two
        self._take(begin if begin >= 0 else end)
        self._taken = end
        log = self._log
        before = log.zone
        log.hear(payload, (self._engine.cols, self._engine.rows))
        if log.zone == "input" and before != "input":
            self._line.prompted()
            self._watch.prompted()
        elif log.zone == "running":
            if self._line.is_echoing:  # the line that was left out ended here
                self._watch.shown(self._engine.consumed, b"\n")
            self._line.entered()

    def _take(self, end: int) -> None:
        """Give the bytes up to `end` of this chunk to those whom they belong to, as things stood until now."""
        begin, self._taken = self._taken, end
        if begin >= end:
            return
        piece = self._chunk[begin:end] if end - begin < len(self._chunk) else self._chunk
        log = self._log
        if log.current is not None:
            if log.zone != "prompt":
                log.current.capture.add(piece)
        elif log.zone == "input":
            self._line.shown(piece)
        if not (self._line.is_echoing and log.zone == "input"):
            self._watch.shown(self._chunk_start + begin, piece)


REPLY_BYTES = 64 * 1024
REPLY_S, REPLY_TRIES = 0.005, 40


class Replies:
    """Collected while a chunk of output is taken in, sent after it.

    A command that has ended since does not read them: its shell would take them for what somebody types. While the
    kernel collects lines nobody can read them, and it would print them: a script that asks has yet to turn that off,
    `cat` of a picture never will. fish reads keys again before it says that the command has ended.
    """

    def __init__(self, pty: Pty, log: CommandLog, leader: Callable[[], int]) -> None:
        self._pty = pty
        self._log = log
        self._leader = leader  # 0 once it has ended
        self._waiting: list[tuple[bool, bytes]] = []  # whether a command asked, and the answer
        self._timer: asyncio.TimerHandle | None = None
        self.has_answered_command = False
        """One went to a command, which may have ended without reading it."""

    def add(self, data: bytes) -> None:
        # A program that asks without reading the answers must not fill our memory with them.
        if self._pty.queued + sum(len(reply) for _, reply in self._waiting) + len(data) <= REPLY_BYTES:
            self._waiting.append((self._log.zone == "running", data))

    def flush(self) -> None:
        if self._waiting and self._timer is None:
            self._send()

    def _send(self, patience: int = REPLY_TRIES) -> None:
        self._timer = None
        leader = self._leader()
        is_late = (
            self._log.kind == "fish"
            and self._log.zone == "running"
            and (patience > REPLY_TRIES - 4 or self._pty.foreground_group == leader)
        )
        if leader and patience and (is_late or self._pty.is_canonical):
            self._timer = asyncio.get_running_loop().call_later(REPLY_S, self._send, patience - 1)
            return
        replies, self._waiting = self._waiting, []
        is_running = self._log.zone == "running"
        for is_of_command, data in replies if leader and not self._pty.is_canonical else ():
            if is_running or not is_of_command:
                self.has_answered_command = self.has_answered_command or is_of_command
                self._pty.send(data)
