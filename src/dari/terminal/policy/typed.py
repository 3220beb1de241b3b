"""What is about to be run when text reaches a pane piece by piece: a line counts when Enter ends it.

An agent may send `rm -rf ` and then `/\\n`; each piece alone is harmless. One `TypedLine` per pane keeps what stands
on the line that was not entered yet and hands out whole texts to judge.
"""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST_CHARS = 64 * 1024
_CLEARS = {"\x03": "C-c", "\x15": "C-u", "\x04": "C-d"}
_ERASES = ("\x7f", "\x08")


@dataclass(frozen=True, slots=True)
class Entry:
    """A text that Enter would run; not `is_certain` when editing keys changed the line in a way we cannot follow."""

    text: str
    is_certain: bool = True


class TypedLine:
    """Follows one shell prompt. Tell it everything that is written to the pane while the shell reads."""

    def __init__(self) -> None:
        self._line = ""
        self._is_certain = True

    @property
    def pending(self) -> str:
        """What stands on the line and was not entered."""
        return self._line

    def peek(self, text: str) -> Entry | None:
        """What would run if `text` were sent now; None when it enters nothing. Nothing is remembered."""
        trial = TypedLine()
        trial._line, trial._is_certain = self._line, self._is_certain
        return trial.add(text)

    def add(self, text: str) -> Entry | None:
        """Remember that `text` was sent; the whole text that it entered, all lines of it, or None."""
        entered: list[str] = []
        was_certain = True
        for char in _plain(text):
            if char in "\r\n":
                entered.append(self._line)
                was_certain = was_certain and self._is_certain
                self.clear()
            elif char in _CLEARS:
                self.clear()
            elif char in _ERASES:
                self._line = self._line[:-1]
            elif char == "\t" or char >= " ":
                # A tab completes a word at a prompt; what it adds is not seen here.
                self._is_certain = self._is_certain and char != "\t"
                self._line += char
            else:
                # Escape sequences, C-r, C-p, C-y …: the line may now hold anything.
                self._is_certain = False
        if len(self._line) > _LONGEST_CHARS:
            self._line, self._is_certain = self._line[-_LONGEST_CHARS:], False
        return Entry("\n".join(entered), was_certain) if entered else None

    def press(self, name: str) -> Entry | None:
        """The same for a key by its name: `enter`, `backspace`, `C-c`; any other key makes the line uncertain."""
        known = {
            "enter": "\r",
            "kp_enter": "\r",
            "C-m": "\r",
            "C-j": "\r",
            "backspace": "\x7f",
            "C-c": "\x03",
            "C-u": "\x15",
        }
        if name in known:
            return self.add(known[name])
        self._is_certain = False
        return None

    def clear(self) -> None:
        """The shell shows a new prompt: the line is empty."""
        self._line, self._is_certain = "", True


def _plain(text: str) -> str:
    """Without the marks of a bracketed paste, in which a tab is a letter."""
    return text.replace("\x1b[200~", "").replace("\x1b[201~", "").replace("\r\n", "\n")
