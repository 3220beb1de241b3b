"""What a command works with: the person's terminal, the bridge, and the profiles as seen from where it was typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dari.cli.remote.failures import painted
from dari.cli.remote.hints import as_typed
from dari.cli.remote.terminal import Terminal
from dari.text.sanitize import escape_hidden

if TYPE_CHECKING:
    from dari.bridge.service import Bridge
    from dari.bridge.upstream.upstream import Upstream
    from dari.bridge.view import ServerView


class World(Struct):
    terminal: Terminal
    bridge: Bridge
    view: ServerView
    program: str
    """`crewx mcp remote`, `dari remote` or `crewx mcp`: what examples and hints name."""
    logs: bool = False
    """`--log` was given."""
    temporary: list[Upstream] = []
    """Servers that the command brought along; they end with it."""

    def say(self, line: str) -> None:
        """A line of the result, for a person. What a server wrote in it was made harmless before."""
        self.terminal.out(f"{line}\n")

    def note(self, line: str) -> None:
        """A line on stderr; made harmless here."""
        self.terminal.err(f"{escape_hidden(as_typed(line))}\n")

    def warn(self, text: str, hint: str = "") -> None:
        self.terminal.err(f"{painted('warning:', '33', self.terminal)} {escape_hidden(as_typed(text))}\n")
        if hint:
            self.terminal.err(f"{painted('hint:', '36', self.terminal)} {escape_hidden(as_typed(hint))}\n")

    def log(self, line: str) -> None:
        """A line for `--log`; the caller has masked its secrets."""
        if self.logs:
            self.terminal.err(f"[log] {escape_hidden(line, one_line=True)}\n")
