"""The line that Enter would run, when text reaches a pane piece by piece.

An agent may send `rm -rf ` and then `/\\n`; each piece alone is harmless. One `TypedLine` per pane keeps what stands
on the line that was not entered yet and hands out whole texts to judge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LONGEST_CHARS = 64 * 1024
_EDITORS = ("\x18\x05",)
"""Keys that open an editor on the line and run what is saved there: C-x C-e."""
_ERASES = ("\x7f", "\x08")
_QUOTES = ("\x16", "\x11")
"""C-v, C-q: the next character stands on the line, whatever it is."""
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
_MARK = re.compile(r"\x1b\[20[01]~")
# Neither one long word nor erasing in it, letter by letter, takes time that grows with its square.
_PIECES = re.compile(r"\x1b\[20[01]~|[\t -~\x80-\U0010ffff]{1,4096}|[\x7f\x08]+|(?s:.)")


@dataclass(frozen=True, slots=True)
class EnteredLine:
    """A text that Enter would run; not `is_certain` when editing keys changed the line in a way we cannot follow."""

    text: str
    is_certain: bool = True


class LineBuffer:
    """Follows one shell prompt. Tell it everything that is written to the pane while the shell reads."""

    def __init__(self) -> None:
        self._line = ""
        self._is_certain = True
        self._before = ""
        self._is_pasting = False
        """Between the marks of a bracketed paste, in which no character acts as a key."""
        self._tail = ""
        """The last characters, which may be the beginning of a mark."""
        self.inert: frozenset[str] = frozenset()
        """Of ^C, ^U, ^H and DEL those that may take nothing off the line as the terminal is set now."""

    @property
    def pending(self) -> str:
        """What stands on the line and was not entered."""
        return self._line

    def peek(self, text: str) -> EnteredLine | None:
        """What would run if `text` were sent now; None when it enters nothing. Nothing is remembered."""
        trial = LineBuffer()
        trial._line, trial._is_certain, trial._before = self._line, self._is_certain, self._before
        trial._is_pasting, trial._tail, trial.inert = self._is_pasting, self._tail, self.inert
        return trial.add(text)

    def add(self, text: str) -> EnteredLine | None:
        """Remember that `text` was sent; the whole text that it entered, all lines of it, or None."""
        entered: list[str] = []
        was_certain = True
        line = [self._line]
        for piece in self._pieces(text):
            if piece in (_PASTE_BEGIN, _PASTE_END):
                self._is_pasting = piece == _PASTE_BEGIN
            elif piece in ("\r", "\n"):
                entered.append("".join(line))
                was_certain = was_certain and self._is_certain
                line, self._is_certain = [], True
            elif _is_control(piece) and (self._is_pasting or self._before in _QUOTES):
                # It stands on the line, or the shell drops it: nothing is erased or given up.
                self._is_certain = False
            elif not self.inert.isdisjoint(piece):
                self._is_certain = self._is_certain and not any(line)
            elif piece == "\x03" or (piece == "\x15" and self._is_certain):
                # C-u takes what is before the cursor, which is all of the line only while nothing moved it.
                line, self._is_certain = [], True
            elif piece == "\x04":
                # At an empty line it ends the shell; else it deletes what is under the cursor, or nothing.
                self._is_certain = self._is_certain and not any(line)
            elif piece[0] in _ERASES:
                # A shell may take a letter and its accents at once.
                self._is_certain = self._is_certain and _erase(line, len(piece)).isascii()
            elif piece[0] == "\t" or piece[0] >= " ":
                # A tab completes a word at a prompt; what it adds is not seen here.
                self._is_certain = self._is_certain and "\t" not in piece
                line.append(piece)
            else:
                # Escape sequences, C-r, C-p, C-y …: the line may now hold anything.
                self._is_certain = False
                if self._before + piece in _EDITORS:
                    entered.append("".join(line))
                    was_certain = False
            self._before = piece[-1]
        self._line = "".join(line)
        if len(self._line) > _LONGEST_CHARS:
            self._line, self._is_certain = self._line[-_LONGEST_CHARS:], False
        return EnteredLine("\n".join(entered), was_certain) if entered else None

    def press(self, name: str) -> EnteredLine | None:
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

    def doubt(self) -> None:
        """Something was sent of which nobody knows what the shell makes."""
        self._is_certain = False

    def clear(self) -> None:
        """The shell shows a new prompt: the line is empty."""
        self._line, self._is_certain, self._is_pasting = "", True, False

    def _pieces(self, text: str) -> list[str]:
        before, self._tail = self._tail, (self._tail + text)[1 - len(_PASTE_BEGIN) :]
        # A mark may come in two parts; the first is on the line already, which is uncertain since its ESC.
        mark = next((each for each in _MARK.finditer(before + text) if each.start() < len(before)), None)
        if mark is None:
            return _PIECES.findall(text.replace("\r\n", "\n"))
        rest = mark.end() - len(before)
        return [text[:rest], mark[0], *_PIECES.findall(text[rest:].replace("\r\n", "\n"))]


def _erase(line: list[str], count: int) -> str:
    """Take letters off the end of a line in pieces; what was taken."""
    taken: list[str] = []
    while count and line:
        last = line.pop()
        if len(last) > count:
            line.append(last[:-count])
        taken.append(last[-count:])
        count -= min(count, len(last))
    return "".join(taken)


def _is_control(piece: str) -> bool:
    return piece[0] != "\t" and (piece[0] < " " or piece[0] in _ERASES)
