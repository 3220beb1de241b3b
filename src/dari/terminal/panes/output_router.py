"""Output on its way in: to the screen, and each piece of it to those whom it belongs to."""

from __future__ import annotations

from dari.terminal.engine.engine import Engine
from dari.terminal.panes.commands import CommandLog
from dari.terminal.panes.expect import OutputExpect
from dari.terminal.panes.prompts import PromptLine
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
        else:
            self._line.shown(piece)
        if not (self._line.is_echoing and log.zone == "input"):
            self._watch.shown(self._chunk_start + begin, piece)
