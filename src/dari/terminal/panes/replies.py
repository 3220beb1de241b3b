"""The terminal's answers to what programs ask (DA, DSR and others): to who asked, and to nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dari.terminal.panes.commands import CommandLog
from dari.terminal.panes.pty import Pty

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
