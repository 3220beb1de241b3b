"""Find the echo of typed text in the output, so that it is not taken for an answer.

Two parties show what is typed. The kernel does at once, while the terminal's ECHO flag is on: the same characters,
in order. A program that reads keys itself (a REPL with a line editor) does behind its prompt. Each typed line is
looked for once, from where the output was when it was typed; what a program says with the same words is output.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Literal

from dari.terminal.panes.output_text import to_stream

Teller = Literal["kernel", "editor"]
MAX_AWAITED = 64
MAX_REMOVED = 1024
MAX_PROMPTS = 16
LINE_BYTES = 4096
# The kernel holds less than this between a program and us, so an echo cannot come later.
KERNEL_BYTES = 256 * 1024
EDITOR_BYTES = 1 << 20
_ROW_BYTES = 256
_TRIES = 64

_PASTE = re.compile(rb"\x1b\[20[01]~")
_SEQUENCE = rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[=>78]"
# Between the characters of a line that an editor draws: colours, moves, and the return with which it wraps.
_BETWEEN = re.compile(rb"(?:" + _SEQUENCE + rb"|[\x00\x07\x08]| ?\r(?!\n))*")
# An editor that draws the whole row anew for each key ends it by putting the cursor back.
_CURSOR_BACK = re.compile(rb"(?:" + _SEQUENCE + rb"|[ \x08])*(?:\r|\x1b\[\d*G)(?:" + _SEQUENCE + rb")*\Z")
_ROW_START = re.compile(rb"\r|\x1b\[1?G")
_CUT = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[()])?\Z")
_LINE_END = re.compile(rb"(?:" + _SEQUENCE + rb")*(?:\r|\n|\^M)")
_EDITS = re.compile(rb"[\x03\x04\x08\x12\x15-\x17\x1a\x1c\x7f]")  # the kernel's own editing keys
_KEYS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b.|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", re.DOTALL)
_PROMPT_ENDS = frozenset(">$#%:?)]}|❯❭»➜λ…")


@dataclass(frozen=True, slots=True)
class _Typed:
    text: bytes
    is_entered: bool
    since: int
    teller: Teller
    line: bytes  # all of the line so far: an editor may draw it anew with each key
    is_again: bool = False  # it was shown; an editor that reads it later, or draws its row anew, shows it once more

    @property
    def is_standing(self) -> bool:
        """The line that is being typed: an editor may draw it any number of times before it is entered."""
        return self.is_again and not self.is_entered


class EchoFilter:
    """Gets everything that is typed and shown in one pane, in order."""

    def __init__(self) -> None:
        self._awaited: deque[_Typed] = deque(maxlen=MAX_AWAITED)
        self._again: deque[_Typed] = deque(maxlen=MAX_AWAITED)
        self._removed: deque[tuple[int, int]] = deque(maxlen=MAX_REMOVED)
        self._held = b""
        self._held_at = 0
        self._row = b""  # the end of what was shown
        self._line = b""
        self._prompts: deque[str] = deque(maxlen=MAX_PROMPTS)  # of line editors that were seen at work here
        self._is_edited = False
        self._is_first = False  # nothing was printed between what was typed, or its echo, and what comes now
        self.is_prompted = False

    @property
    def is_idle(self) -> bool:
        """No echo is expected: output goes to `passed` unfiltered."""
        return not (self._awaited or self._again or self._held)

    @property
    def is_holding(self) -> bool:
        """The end of the output may be the beginning of an echo."""
        return bool(self._held)

    @property
    def held_end(self) -> int:
        return self._held_at + len(self._held)

    def typed(self, position: int, data: bytes, teller: Teller) -> None:
        data = _PASTE.sub(b"", data)[-16 * LINE_BYTES :]
        if not self._awaited:
            self._is_first = True
        if teller == "editor" and not self._line:
            self._remember_prompt()
        if self._again and self._again[-1].is_standing:
            self._again.pop()
        *lines, last = data.replace(b"\r\n", b"\r").replace(b"\n", b"\r").split(b"\r")
        for number, line in enumerate([*lines, last]):
            is_entered = number < len(lines)
            parts = [part for part in (_EDITS if teller == "kernel" else _KEYS).split(line) if part]
            for part in parts:
                shown = _with_carets(part) if teller == "kernel" else part
                self._line = (self._line + shown)[-LINE_BYTES:]
                ends = is_entered and part is parts[-1]
                self._awaited.append(_Typed(shown[:LINE_BYTES], ends, position, teller, self._line))
            if is_entered:
                if len(self._line.strip()) > 1:
                    self._again.append(_Typed(self._line, True, position, "editor", self._line, is_again=True))
                self._line = b""
        if len(self._line.strip()) > 1:
            self._again.append(_Typed(self._line, False, position, "editor", self._line, is_again=True))

    def prompted(self) -> None:
        """A shell reported the end of its prompt."""
        self._row, self.is_prompted = b"> ", True

    def sift(self, start: int, data: bytes, is_edited: bool) -> list[tuple[int, bytes]]:
        """Output without echoes. `is_edited` says that a program reads keys itself now: it may not have done so, or
        not do so any more, when it drew this. What it drew behind a prompt of its own is known all the same."""
        if self._held:
            start, data, self._held = self._held_at, self._held + data, b""
        left: list[tuple[int, bytes]] = []
        begin, hold = 0, len(data)
        self._is_edited = is_edited or self.is_prompted
        again = [typed for typed in self._again if self._is_edited or (self._prompts and typed.is_entered)]
        for typed in [*self._awaited, *again]:
            if start + begin - typed.since > (KERNEL_BYTES if typed.teller == "kernel" else EDITOR_BYTES):
                self._forget(typed)
                continue
            while found := self._find(data, max(begin, typed.since - start), begin, typed):
                if found[1] is None:
                    hold = min(hold, found[0])
                    break
                self._pass(left, start, data, begin, found[0])
                begin = found[1]
                self._removed.append((start + found[0], start + begin))
                self._row = (self._row + data[found[0] : begin])[-_ROW_BYTES:]
                self._is_first = True
                if not typed.is_standing:
                    self._forget(typed)
                    break
            if hold < len(data):
                break
        self._pass(left, start, data, begin, hold)
        self._held, self._held_at = data[hold:], start + hold
        self.is_prompted = False
        return left

    def release(self) -> list[tuple[int, bytes]]:
        """Nothing followed: what was held back is output."""
        held, self._held = self._held, b""
        self.passed(held)
        return [(self._held_at, held)] if held else []

    def without(self, start: int, data: bytes) -> list[tuple[int, bytes]]:
        """Output of an earlier moment without what was found to be echo in it, and without what is held back now."""
        gaps = [*self._removed, (self._held_at, self._held_at + len(self._held))]
        left, begin = [], 0
        for gap_start, gap_end in gaps:
            first, last = max(gap_start - start, begin), min(gap_end - start, len(data))
            if first < last:
                left.append((start + begin, data[begin:first]))
                begin = last
        left.append((start + begin, data[begin:]))
        return [(at, piece) for at, piece in left if piece]

    def _pass(self, left: list[tuple[int, bytes]], start: int, data: bytes, begin: int, end: int) -> None:
        if begin < end:
            piece = data[begin:end]
            self.passed(piece)
            left.append((start + begin, piece))

    def passed(self, data: bytes) -> None:
        self._row = (self._row + data[-_ROW_BYTES:])[-_ROW_BYTES:]
        if self._is_first and to_stream(data[:LINE_BYTES]).strip():
            self._is_first = False

    def _forget(self, typed: _Typed) -> None:
        """This one and those that were typed before it: echoes come in order."""
        queue = self._again if typed.is_again else self._awaited
        while queue and queue.popleft() is not typed:
            pass

    def _find(self, data: bytes, at: int, begin: int, typed: _Typed) -> tuple[int, int | None] | None:
        """Where the echo is; its end is None when the data ends before it does."""
        if typed.teller == "kernel":
            return _kernel_echo(data, at, typed)
        wanted = {typed.line, typed.text}
        found = [place for text in wanted if (place := self._editor_echo(data, at, begin, text, typed))]
        return min(found, key=lambda place: (place[0], -(place[1] or 0))) if found else None

    def _editor_echo(
        self, data: bytes, at: int, begin: int, text: bytes, typed: _Typed
    ) -> tuple[int, int | None] | None:
        for _ in range(_TRIES):
            at = data.find(text[:1], at)
            if at < 0:
                return None
            end = _drawn(data, at, text)
            if end is not None and end >= 0 and not typed.is_entered and _ends_redrawn_row(data, begin, at, end):
                return at, end
            if end != -1 and self._may_begin(data, at, begin, typed):
                if end is None:
                    return at, None
                if not typed.is_again or typed.is_standing or _LINE_END.match(data, end) or end == len(data):
                    return at, end
            at += 1
        return None

    def _may_begin(self, data: bytes, at: int, begin: int, typed: _Typed) -> bool:
        """Whether a line editor would draw here: first of all, behind a prompt, or on a line of its own."""
        before = to_stream(data[begin:at])
        if self._is_first and not before.strip() and not typed.is_again:
            return True
        if typed.is_again and not self._is_edited:
            return self._row_before(before) in self._prompts
        if len(typed.text) < 2:
            return False
        if typed.is_standing and data[at - 1 : at] == b"\b":
            return True
        row = self._row_before(before)
        return row[-1:] in _PROMPT_ENDS if row else not typed.is_again or typed.is_standing

    def _row_before(self, text: str) -> str:
        row = text if "\n" in text else to_stream(self._row) + text
        return row.rpartition("\n")[2].rstrip()

    def _remember_prompt(self) -> None:
        row = self._row_before("")
        if row[-1:] in _PROMPT_ENDS and row not in self._prompts:
            self._prompts.append(row)


def _kernel_echo(data: bytes, at: int, typed: _Typed) -> tuple[int, int | None] | None:
    text = typed.text
    while (at := data.find(text, at)) >= 0:
        end = at + len(text)
        if not typed.is_entered or _LINE_END.match(data, end):
            return at, end
        if end == len(data):
            return at, None
        at += 1
    for size in range(min(len(text) - 1, len(data)), 0, -1):
        if data.endswith(text[:size]):
            return len(data) - size, None
    return None


def _drawn(data: bytes, at: int, text: bytes) -> int | None:
    """The end of the text that begins here, drawn with sequences in between; None when the data ends first, else -1."""
    if data.startswith(text, at):
        return at + len(text)
    for index in range(len(text)):
        if at >= len(data):
            return None
        if data[at] != text[index]:
            skipped = _BETWEEN.match(data, at)
            at = skipped.end() if skipped else at
            if at >= len(data) or _CUT.match(data, at):
                return None
            if data[at] != text[index]:
                return -1
        at += 1
    return at


def _ends_redrawn_row(data: bytes, begin: int, at: int, end: int) -> bool:
    return _ROW_START.search(data, begin, at) is not None and _CURSOR_BACK.match(data, end) is not None


def _with_carets(text: bytes) -> bytes:
    """Control characters as the kernel shows them."""
    if not any(byte < 0x20 for byte in text):
        return text
    return b"".join([b"^%c" % (byte + 64) if byte < 0x20 and byte != 9 else b"%c" % byte for byte in text])
