"""A person at a terminal: a real PTY whose other end is our own engine, so that a test can read what is drawn."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dari.terminal.engine.engine import make_engine

PATIENCE_S = 40.0


class Person:
    """Types, clicks, looks, and changes the size of the window."""

    def __init__(self, words: list[str], cols: int, rows: int) -> None:
        self.engine = make_engine(cols, rows)
        self._master, self._slave = os.openpty()
        self.resize(cols, rows)
        self.before = termios.tcgetattr(self._slave)
        self.seen = b""
        self.engine.on_reply = lambda data: None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dari.cli.crux.main", *words],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            start_new_session=True,
        )

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, cols: int, rows: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        self.engine.resize(cols, rows)
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGWINCH)

    @property
    def screen(self) -> list[str]:
        return [row.text for row in self.engine.grid()]

    @property
    def status(self) -> str:
        return self.screen[-1]

    @property
    def modes(self) -> list[object]:
        """What the kernel was told about the terminal."""
        return termios.tcgetattr(self._slave)

    def until(self, is_so: Callable[[], object]) -> None:
        """Look until it is so; a frame that has come in part only is not looked at."""
        deadline = time.monotonic() + PATIENCE_S
        while self.engine.modes.synchronized or not is_so():
            left = deadline - time.monotonic()
            assert left > 0, "\n".join([*self.screen, str(self.engine.cursor), str(self.engine.modes)])
            self._look(min(left, 0.05))

    def until_text(self, text: str) -> None:
        self.until(lambda: any(text in row for row in self.screen))

    def end(self) -> int:
        """Its exit code, once everything it wrote has been seen."""
        self.until(lambda: self.process.poll() is not None)
        while self._look(0):
            pass
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)
        self.engine.close()

    def _look(self, timeout_s: float) -> bool:
        if not select.select([self._master], [], [], timeout_s)[0]:
            return False
        data = os.read(self._master, 1 << 16)
        self.seen += data
        self.engine.feed(data)
        return True


@contextmanager
def person(*words: str, cols: int = 100, rows: int = 30) -> Iterator[Person]:
    someone = Person(list(words), cols, rows)
    try:
        yield someone
    finally:
        someone.close()
