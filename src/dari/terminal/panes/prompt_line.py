"""Lines that are typed at a prompt, or ahead of it, by anybody else than `execute`."""

from __future__ import annotations

import re
from collections.abc import Callable

from dari.terminal.panes.commands import CommandLog, Zone
from dari.terminal.panes.output_text import to_text
from dari.terminal.panes.shell_integration import ShellKind
from dari.terminal.policy.line_buffer import LineBuffer

MAX_SHOWN_BYTES = 256 * 1024
RECENT_CHARS = 2000
MAX_AHEAD_CHARS = 16 * 1024
_PASTED = re.compile(rb"\x1b\[200~.*?\x1b\[201~", re.DOTALL)
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
_ENTER = (b"\r", b"\n")
_EDITS = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]")


class PromptLine:
    """Gets everything that is typed, and where prompts end and commands begin.

    A line that was typed ahead is shown once more behind the prompt, by the shell's line editor: so all that is shown
    there is kept. `column` is where the cursor stands now.
    """

    def __init__(self, kind: Callable[[], ShellKind | None], column: Callable[[], int]) -> None:
        self._kind = kind
        self._cursor_column = column
        self._column = 0
        self._shown: list[bytes] = []
        self._shown_bytes = 0
        self._recent = ""
        """What was typed last."""
        self._has_typed_ahead = False
        self.has_lines_ahead = False
        """Lines were entered, and the shell may not have read them all."""
        self.is_echoing = False
        """What comes now is the line that is being typed at a prompt."""
        self.is_begun = False
        """Somebody else than `execute` typed on it, and has not yet entered it."""
        self.is_interrupted = False
        self._is_pasting = False
        """Somebody typed the mark of a paste's beginning, and not that of its end."""

    @property
    def _ends(self) -> tuple[bytes, ...]:
        # To fish ^C is a key like others: it clears the line, sooner or later, and says nothing.
        return _ENTER if self._kind() == "fish" else (*_ENTER, b"\x03")

    def typed(self, data: bytes, zone: Zone, *, is_command: bool) -> bool:
        """Whether the shell has something to say about it: somebody pressed Enter or ^C at the prompt."""
        is_first, recent = zone == "input" and not self.is_echoing, self._recent
        self._recent = (recent + data.decode(errors="replace"))[-RECENT_CHARS:]
        begin, end = self._recent.rfind(_PASTE_BEGIN), self._recent.rfind(_PASTE_END)
        self._is_pasting = begin > end or (self._is_pasting and begin == end)
        self.has_lines_ahead = self.has_lines_ahead or (not is_command and any(end in data for end in _ENTER))
        # sh does not say when a command begins, and what the kernel has of a line outlasts its next prompt.
        if not is_command and (zone != "input" or self._kind() == "sh"):  # a program may leave it to the shell
            self._has_typed_ahead = not data.endswith((*_ENTER, b"\x03"))
        if zone != "input":
            return False
        if self._kind() != "sh":
            if is_first and not self._was_typed_ahead(recent):
                self._forget_shown()
            self.is_echoing = True
        self.is_begun = not is_command and not data.endswith(self._ends)
        if is_command or not any(end in _PASTED.sub(b"", data) for end in self._ends):
            return False
        self.is_interrupted = data.endswith(b"\x03")
        return True

    def _was_typed_ahead(self, recent: str) -> bool:
        """Whether what stands behind the prompt may be of the one who types, and is not of a job in the background."""
        shown = self.text(200, 50) if self._shown else ""
        return bool(shown) and (shown in recent or _EDITS.search(re.split(r"[\r\n]", recent)[-1]) is not None)

    def shown(self, piece: bytes) -> None:
        if self._shown_bytes < MAX_SHOWN_BYTES:
            self._shown.append(piece)
            self._shown_bytes += len(piece)

    def prompted(self) -> None:
        self.is_echoing = self.is_begun = False
        self._forget_shown()

    def _forget_shown(self) -> None:
        self._shown.clear()
        self._shown_bytes = 0
        self._column = self._cursor_column()

    def entered(self) -> None:
        self.is_echoing = self.is_begun = False

    def clearing(self) -> bytes:
        """Keys that empty the line: what stands on it is not part of the command that is typed next."""
        is_begun, self._has_typed_ahead = self.is_begun or self._has_typed_ahead, False
        return self.emptying if is_begun else b""

    @property
    def emptying(self) -> bytes:
        """The first key may be taken for the rest of another one: C-v C-u is a letter, C-x C-e opens an editor."""
        end = _PASTE_END.encode() if self._is_pasting else b""
        return end + (b"\x15\x15" if self._kind() == "sh" else b"\x15\x05\x15")

    @property
    def data(self) -> bytes:
        """All that was shown behind the prompt."""
        return b"".join(self._shown)

    def text(self, cols: int, rows: int) -> str:
        """The line as it stands behind the prompt; editors move the cursor by columns of the screen."""
        column = min(self._column, cols - 1)
        placed = b"\x1b[%dG" % (column + 1) if column else b""
        return to_text(placed + self.data, cols, rows)[column:].strip()


class KernelLines:
    """Lines for a shell that lets the kernel collect them, `sh`: it says nothing when a command begins.

    A line that is entered at its prompt is a command from then on. One that is typed ahead may be read by a program or
    by the shell: when the next prompt comes and nothing was entered at the last one, the shell has read it. Which one
    of several is not known, so they are all kept as one command.
    """

    def __init__(self, log: CommandLog, is_waiting: Callable[[], bool]) -> None:
        self._log = log
        self._is_waiting = is_waiting
        self._entry = LineBuffer()
        self._ahead: list[str] = []

    def typed(self, data: bytes, size: tuple[int, int], *, is_command: bool) -> None:
        """Not what is typed for a program that asks for a password."""
        if is_command:
            self._entry.clear()
            return
        is_at_prompt = self._is_at_prompt()
        entered = self._entry.add(data.decode(errors="replace"))
        if entered is None:
            return
        lines = entered.text.split("\n")
        if is_at_prompt:
            self._log.enter_typed(lines.pop(0), size)
        room = MAX_AHEAD_CHARS - sum(map(len, self._ahead))
        for line in filter(str.strip, lines):
            if (room := room - len(line)) >= 0:
                self._ahead.append(line)

    def take_ahead(self) -> str:
        """What the shell may have read of it."""
        lines, self._ahead = self._ahead, []
        return "\n".join(lines)

    def _is_at_prompt(self) -> bool:
        log = self._log
        if log.zone != "input" or (log.current is not None and not log.wants_more):
            return False
        if self._ahead and self._is_waiting():
            self._ahead.clear()  # all of it was read
        return not self._ahead
