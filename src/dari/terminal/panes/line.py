"""The line at a shell's prompt: who typed on it, and what the shell showed of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from dari.terminal.panes.commands import Zone
from dari.terminal.panes.integration import ShellKind

_PIECES = 10_000
_PASTED = re.compile(rb"\x1b\[200~.*?\x1b\[201~", re.DOTALL)
_ENTER = (b"\r", b"\n")


class PromptLine:
    """Told of everything that is typed, and of where prompts end and commands begin."""

    def __init__(self, kind: Callable[[], ShellKind | None]) -> None:
        self._kind = kind
        self._shown: list[bytes] = []
        self._has_typed_ahead = False
        self.is_echoing = False
        """What comes now is the line that is being typed at a prompt."""
        self.is_begun = False
        """Somebody else than `execute` typed on it, and has not yet entered it."""
        self.is_interrupted = False

    @property
    def _ends(self) -> tuple[bytes, ...]:
        # To fish ^C is a key like others: it clears the line, sooner or later, and says nothing.
        return _ENTER if self._kind() == "fish" else (*_ENTER, b"\x03")

    def typed(self, data: bytes, zone: Zone, *, is_command: bool) -> bool:
        """Whether the shell has something to say about it: somebody pressed Enter or ^C at the prompt."""
        if zone != "input":
            if not is_command:  # a program may leave it to the shell
                self._has_typed_ahead = not data.endswith((*_ENTER, b"\x03"))
            return False
        self.is_echoing = self._kind() != "sh"
        self.is_begun = not is_command and not data.endswith(self._ends)
        if is_command or not any(end in _PASTED.sub(b"", data) for end in self._ends):
            return False
        self.is_interrupted = data.endswith(b"\x03")
        return True

    def shown(self, piece: bytes) -> None:
        if self.is_echoing and len(self._shown) < _PIECES:
            self._shown.append(piece)

    def prompted(self) -> None:
        self.is_echoing = self.is_begun = False
        self._shown.clear()

    def entered(self) -> None:
        self.is_echoing = self.is_begun = False

    def clearing(self) -> bytes:
        """Keys that empty the line: what stands on it is not part of the command that is typed next."""
        is_begun, self._has_typed_ahead = self.is_begun or self._has_typed_ahead, False
        return self.emptying if is_begun else b""

    @property
    def emptying(self) -> bytes:
        return b"\x15" if self._kind() == "sh" else b"\x05\x15"

    @property
    def data(self) -> bytes:
        """All that the shell showed of it."""
        return b"".join(self._shown)
