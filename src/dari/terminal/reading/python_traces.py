"""Python tracebacks: chained, grouped, and syntax errors that come without a stack."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Document, Parsed, Text, number
from dari.terminal.reading.traces import Traces

_OPENING = "Traceback (most recent call last):"
_FRAME = re.compile(r'File "([^"]*+)", line (\d++)(?:, in (.*+))?$')
_ERROR = re.compile(r"([A-Za-z_][\w.]*+)(?:: (.*+))?$")
_CHAINS = {
    "The above exception was the direct cause of the following exception:": "cause",
    "During handling of the above exception, another exception occurred:": "context",
}
_MARGIN = re.compile(r"((?: *+[|+])*)( ?.*+)$")
_PART = re.compile(r"[ +|-]*-{10} (\d++|\.\.\.) -{10,}+$")
_NAMED = re.compile(r"(?:\w++\.)*\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration|Group|Timeout|NotFound)\w*+$")


def read_python_trace(text: Text) -> Parsed | None:
    """`relation` says how an error is tied to the one before it, `group` which part of an exception group it is."""
    reader = _Reader()
    for index, line in enumerate(text.lines):
        reader.read(index, line)
    reader.end()
    return reader.traces.parsed(text.lines)


class _Reader:
    def __init__(self) -> None:
        self.traces = Traces()
        self.frames: list[dict[str, Document]] = []
        self.lines: list[int] = []
        self.relation = ""
        self.part = ""
        self.is_open = False
        self.is_last = False
        self.is_part = False
        self.is_announced = False

    def read(self, index: int, line: str) -> None:
        margin = _MARGIN.match(line)
        bare = (margin[2] if margin and "|" in margin[1] else line).strip()
        if part := _PART.match(line):
            self.part, self.is_part, self.is_last = part[1], True, False
            self.traces.used.add(index)
        elif bare.endswith(_OPENING):
            self._open(index)
            self.is_announced = True
        elif frame := _FRAME.match(bare):
            if not self.is_open:
                self._open(index)
            self.lines.append(index)
            if len(self.frames) < 2000:
                self.frames.append({"file": frame[1], "line": number(frame[2]), "function": frame[3] or ""})
        elif bare in _CHAINS:
            self.relation = _CHAINS[bare]
            self.traces.used.add(index)
        elif self.is_part and not self.is_open and "|" in line and (error := _ERROR.match(bare)):
            self._open(index)
            self._close(index, error[1], error[2] or "")
        elif self.is_open:
            self._read_inside(index, line, bare)
        elif self.is_last and bare and "|" in line[:8] and not bare.startswith("+"):
            self.traces.items[-1]["message"] += "\n" + bare
            self.traces.used.add(index)

    def end(self) -> None:
        """A stack whose error line was not printed yet is kept when it has frames and was announced."""
        if self.is_open and self.is_announced and self.frames:
            self._close(self.lines[-1], "", "")

    def _open(self, index: int) -> None:
        self.is_open, self.is_last, self.frames, self.lines = True, False, [], [index]
        self.is_part = self.is_announced = False

    def _read_inside(self, index: int, line: str, bare: str) -> None:
        indent = len(line) - len(line.lstrip(" |+"))
        error = _ERROR.match(bare)
        if error and self.frames and self._is_error(error, line, indent):
            self._close(index, error[1], error[2] or "")
        elif bare:
            self.lines.append(index)
            if self.frames and "code" not in self.frames[-1] and bare.strip("^~ "):
                self.frames[-1]["code"] = bare
            if len(self.lines) > 50 and not self.frames:
                self.is_open = False

    def _is_error(self, error: re.Match[str], line: str, indent: int) -> bool:
        if "|" in line[:indent]:
            return line[:indent].endswith("| ") and indent == len(line[:indent].rstrip()) + 1
        return indent == 0 or (_NAMED.match(error[1]) is not None and indent <= 2 and "code" in self.frames[-1])

    def _close(self, index: int, error: str, message: str) -> None:
        self.traces.add(index, "python", error, message, relation=self.relation, group=self.part)
        self.traces.items[-1]["frames"] = self.frames
        self.traces.used.update(self.lines)
        self.is_open, self.is_last, self.relation = False, True, ""
