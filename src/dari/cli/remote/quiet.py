"""A terminal on which nobody can be asked and nothing moves: for commands that do several things at once."""

from __future__ import annotations

from dari.cli.remote.terminal import Terminal
from dari.errors import InvalidInput


class QuietTerminal:
    """Writes where the real one writes; says that no stream is a screen."""

    stdin_is_tty = stdout_is_tty = stderr_is_tty = False
    colour = False

    def __init__(self, terminal: Terminal) -> None:
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
