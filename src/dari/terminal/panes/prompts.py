"""Prompts that no shell reports: of a shell inside the pane's own or in its place, far away, or without its hooks.

Who has the terminal, how it reads keys, and what the row of the cursor says decide which way a command can go:
`join` teaches a shell on this machine to tell about its commands, `mark` puts marks around a single command, which
works in every POSIX shell however far away it is, `idle` only sees that the prompt has come back.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dari.terminal.engine.engine import Engine
from dari.terminal.panes.commands import Zone
from dari.terminal.panes.pty import ProcessInfo
from dari.terminal.panes.shell_integration import ShellKind, kind_of

Way = Literal["join", "mark", "idle"]
OTHER_SHELLS = frozenset(["csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "rc", "es", "ion", "murex"])
# `#` of psql (`db=#`, `db-#`) and the like is not the end of a shell's prompt; `>` is that of most REPLs.
_PROMPT = re.compile(r"(?:^|[^=*!\-^(])[$#%❯➜λ»]$")
_ANY_PROMPT = re.compile(r"[$#%>❯➜λ»)]$")
_WITH_VALUE = frozenset(["--rcfile", "--init-file", "-O", "+O", "-o", "+o", "-C", "--init-command"])


@dataclass(frozen=True, slots=True)
class FoundPrompt:
    way: Way
    kind: ShellKind | None
    pid: int


def find_prompt(
    process: ProcessInfo | None, engine: Engine, *, is_canonical: bool, has_echo: bool, may_read: bool
) -> FoundPrompt | None:
    """The prompt that the pane seems to be at; None when something else has the terminal, as far as one can see.

    `may_read`: a builtin of the shell may be what reads the terminal.
    """
    if process is None or engine.is_alternate:
        return None
    row = _row(engine)
    kind = kind_of(process.name)
    if kind is not None:
        looks_right = _PROMPT.search(row) is not None
        if is_canonical:
            is_at_prompt = kind == "sh" and (looks_right or (not may_read and _reads_terminal(process.pid)))
        else:  # `read -s -n 1` reads keys, too; a line editor asks for pastes to be marked
            is_at_prompt = not has_echo and (looks_right or (not may_read and engine.modes.bracketed_paste))
        if not is_at_prompt or not _is_interactive(process.command_line):
            return None
        if _is_near(process.pid):
            return FoundPrompt("join", kind, process.pid)
        return FoundPrompt("idle" if kind == "fish" else "mark", kind, process.pid)
    if process.name in OTHER_SHELLS:
        return FoundPrompt("idle", None, process.pid) if _ANY_PROMPT.search(row) else None
    if not is_canonical and not has_echo and _PROMPT.search(row):
        return FoundPrompt("mark", None, process.pid)
    return None


def _row(engine: Engine) -> str:
    """What stands before the cursor; behind it may be a prompt of the right side, or what another width left there."""
    cursor = engine.cursor
    return engine.text(cursor.row, cursor.row + 1)[: cursor.col].rstrip()


def _is_interactive(command_line: str) -> bool:
    """A shell that was given a script, or a command as text, is at no prompt whatever it shows."""
    try:
        words = iter(shlex.split(command_line)[1:])
    except ValueError:
        return False
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word == "-" or word == "--" or word.startswith("--"):
            continue
        elif not word.startswith(("-", "+")) or "c" in word:
            return False
    return True


def _reads_terminal(pid: int) -> bool:
    """Whether it sleeps in a read of a terminal, and not until a child ends."""
    try:
        with open(f"/proc/{pid}/wchan") as file:
            return file.read() in ("wait_woken", "n_tty_read", "tty_read")
    except OSError:
        return False


def _is_near(pid: int) -> bool:
    """Whether it may read our files: it is the same user's, and sees the same ones."""
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid() and os.readlink(f"/proc/{pid}/root") == "/"
    except OSError:
        return not os.path.isdir("/proc/self")  # without /proc there is nothing to ask


_PIECES = 10_000
_PASTED = re.compile(rb"\x1b\[200~.*?\x1b\[201~", re.DOTALL)
_ENTER = (b"\r", b"\n")


class PromptLine:
    """Gets everything that is typed, and where prompts end and commands begin."""

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
        if self._kind() == "sh" and not is_command:
            # It does not say when a command begins, and what the kernel has of a line outlasts its next prompt.
            self._has_typed_ahead = not data.endswith((*_ENTER, b"\x03"))
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
