"""The person's side of a command: two streams out, one in, and what is known of the screen.

`out` is the result and nothing else; `err` is everything a person or a log reads. Text is printed as it is: whoever
prints what a server said makes it harmless first (`dari.text.sanitize`).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol, TextIO

from dari.cli.remote.fast_client import terminal_columns
from dari.errors import InvalidInput

_PIECE_BYTES = 1 << 16


class Console(Protocol):
    """Implemented here over this process's streams, and by the door over its socket."""

    columns: int
    stdin_is_tty: bool
    stdout_is_tty: bool
    stderr_is_tty: bool
    colour: bool
    """The person's environment takes colours (no NO_COLOR, no dumb TERM); whether a stream is a tty is told above."""

    def out(self, text: str) -> None:
        """Write to stdout. Bytes that were no UTF-8 come as lone surrogates (`surrogateescape`) and go out again."""

    def err(self, text: str) -> None:
        """Write to stderr."""

    async def read_stdin(self) -> bytes:
        """Everything up to the end of stdin."""
        ...

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        """One line from the person, without its end; empty also at the end of input. InvalidInput without a tty."""
        ...

    async def drain(self) -> None:
        """Return when what was written so far is on its way."""


class ProcessConsole:
    """This process's own stdin, stdout and stderr. A reader that left is no error: the rest is dropped."""

    def __init__(self) -> None:
        self.stdin_is_tty = _is_tty(sys.stdin)
        self.stdout_is_tty = _is_tty(sys.stdout)
        self.stderr_is_tty = _is_tty(sys.stderr)
        self.columns = terminal_columns()
        self.colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def out(self, text: str) -> None:
        _write(sys.stdout, text)

    def err(self, text: str) -> None:
        _write(sys.stderr, text)

    async def read_stdin(self) -> bytes:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()

        def finish(data: bytes) -> None:
            if not done.done():
                done.set_result(data)

        def read() -> None:
            pieces: list[bytes] = []
            try:
                while piece := os.read(0, _PIECE_BYTES):
                    pieces.append(piece)
            except OSError:
                pass  # stdin is closed: there is nothing to read
            try:
                loop.call_soon_threadsafe(finish, b"".join(pieces))
            except RuntimeError:
                pass  # nobody waits any more

        # Not the loop's executor: a Ctrl-C must not wait for a read that never ends.
        threading.Thread(target=read, daemon=True).start()
        return await done

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        if not self.stdin_is_tty:
            raise InvalidInput("a question needs a person, and stdin is no terminal", "run it in a terminal")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            # A terminal hands over whole lines, so one read is one answer.
            try:
                data = os.read(0, _PIECE_BYTES)
            except OSError:
                data = b""
            if not done.done():
                done.set_result(data)

        loop.add_reader(0, read)
        try:
            with _unseen(secret):
                self.err(prompt)  # after the echo is off: some people type fast
                line = await done
        finally:
            loop.remove_reader(0)
            if secret:
                self.err("\n")
        return line.decode("utf-8", "replace").rstrip("\r\n")

    async def drain(self) -> None:
        """Every write was flushed already."""


@contextmanager
def _unseen(secret: bool) -> Iterator[None]:
    """Nothing of what is typed shows on the screen."""
    if not secret or sys.platform == "win32":
        yield
        return
    import termios

    before = termios.tcgetattr(0)
    hidden = termios.tcgetattr(0)
    hidden[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSADRAIN, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _is_tty(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False  # closed


def _write(stream: TextIO, text: str) -> None:
    try:
        binary: BinaryIO | None = getattr(stream, "buffer", None)
        if binary is None:
            stream.write(text)
        else:
            binary.write(as_bytes(text))
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def as_bytes(text: str) -> bytes:
    """What goes out for `text`: escaped bytes as they came, any other half of a pair written as an escape."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


class QuietConsole:
    """Writes where the real one writes; says that no stream is a screen."""

    stdin_is_tty = stdout_is_tty = stderr_is_tty = False
    colour = False

    def __init__(self, terminal: Console) -> None:
        self._terminal = terminal
        self.columns = terminal.columns

    def out(self, text: str) -> None:
        self._terminal.out(text)

    def err(self, text: str) -> None:
        self._terminal.err(text)

    async def read_stdin(self) -> bytes:
        return b""

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        raise InvalidInput("nobody can be asked while several calls run", "run that call alone")

    async def drain(self) -> None:
        await self._terminal.drain()
