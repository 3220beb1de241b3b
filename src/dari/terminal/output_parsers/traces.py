"""Stack traces of Python, Node, Go, Rust and Java; each item is one error with its frames, in the order printed."""

from __future__ import annotations

import re

from dari.terminal.output_parsers.result import Document, OutputText, Parsed, number, ranges, share

_MAX_FRAMES = 2000
_AT = re.compile(
    r"\s*+at (?:async )?(?:(?P<function>\S.*) \()?(?P<file>(?:node:|file://|[A-Za-z]:\\)?[^\s()]*?):(?P<line>\d++):\d++\)?$"
)
_NODE_ERROR = re.compile(
    r"(?:Uncaught |\[cause\]: )?(?:([\w$.]{0,80}(?:Error|Exception)\w{0,40}+)(?: \[(\w++)\])?(?:: (.*+))?"
    r"|Error: (.*+))$"
)
_THROWN = re.compile(r"((?:file://|/|[A-Za-z]:\\\\)\S+):(\d++)$")
_JAVA_AT = re.compile(r"\s++at (?P<function>[\w.$<>/@\-]++)\((?P<where>[^)]*+)\)")
_JAVA_ERROR = re.compile(
    r"(?:Exception in thread \"[^\"]*+\" |(?P<cause>Caused by: )|\s*+(?P<suppressed>Suppressed: ))?"
    r"(?P<name>(?:[a-z_][\w$]*+\.)+[A-Z][\w$]*+)(?:: (?P<message>.*+))?$"
)
_GO_PANIC = re.compile(r"(panic|fatal error): (.*+)$")
_GOROUTINE = re.compile(r"goroutine \d++ \[([^\]]++)\]:$")
_GO_PLACE = re.compile(r"\s++(\S+\.(?:go|s)):(\d++)(?: \+0x[0-9a-f]++)?$")
_GO_CALL = re.compile(r"(?:created by )?([\w./*()\[\]\-·…]+?)(?:\((?:[^()]*+)\))?(?: in goroutine \d++)?$")
_RUST_PANIC = re.compile(
    r"thread '([^']*+)'(?: \(\d++\))? panicked at (?:'(?P<old>.*)', )?(?P<file>[^:']++):(?P<line>\d++)(?::\d++)?:?$"
)
_RUST_FRAME = re.compile(r" *+\d++: (?:0x[0-9a-f]++ - )?(\S.*+)$")
_RUST_PLACE = re.compile(r" ++at (\S+?):(\d++)(?::\d++)?$")

Item = dict[str, Document]


class Traces:
    """The errors found so far and the lines they came from."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.used: set[int] = set()

    def add(self, index: int, language: str, error: str, message: str, **more: Document) -> None:
        item: Item = {"language": language, "error": error, "message": message, "frames": []}
        item.update({key: value for key, value in more.items() if value})
        self.items.append(item)
        self.used.add(index)

    def frame(self, index: int, file: str, line: int | None, function: str) -> None:
        if len(self.items[-1]["frames"]) < _MAX_FRAMES:
            self.items[-1]["frames"].append({"file": file, "line": line, "function": function})
        self.used.add(index)

    def parsed(self, lines: list[str]) -> Parsed | None:
        if not self.items:
            return None
        trust = 0.62 + 0.34 * share(self.used, lines)
        return Parsed(type="traceback", confidence=trust, items=self.items, lines=ranges(self.used))


def read_node_trace(text: OutputText) -> Parsed | None:
    traces = Traces()
    error: tuple[int, str, str] | None = None
    thrown: re.Match[str] | None = None
    for index, line in enumerate(text.lines):
        if (at := _AT.match(line)) and (error or traces.items):
            if error:
                place = {"file": thrown[1], "at_line": number(thrown[2])} if thrown else {}
                traces.add(error[0], "javascript", error[1], error[2].strip(), **place)
                error, thrown = None, None
            traces.frame(index, at["file"], number(at["line"]), at["function"] or "")
        elif match := _NODE_ERROR.match(line.strip()):
            error = (index, match[1] or "Error", match[3] or match[4] or "")
        elif match := _THROWN.match(line):
            thrown, error = match, None
        elif line:
            error = (error[0], error[1], f"{error[2]}\n{line}") if error and index - error[0] < 10 else None
    return traces.parsed(text.lines)


def read_java_trace(text: OutputText) -> Parsed | None:
    traces = Traces()
    waiting: tuple[int, re.Match[str]] | None = None
    for index, line in enumerate(text.lines):
        if at := _JAVA_AT.match(line):
            if waiting:
                place, error = waiting
                relation = "cause" if error["cause"] else "suppressed" if error["suppressed"] else ""
                traces.add(place, "java", error["name"], error["message"] or "", relation=relation)
                waiting = None
            if traces.items:
                file, _, row = at["where"].partition(":")
                traces.frame(index, file, number(row), at["function"])
        elif match := _JAVA_ERROR.match(line):
            waiting = (index, match)
        elif line.strip().startswith("... ") and traces.items:
            traces.used.add(index)
    return traces.parsed(text.lines)


def read_go_trace(text: OutputText) -> Parsed | None:
    traces = Traces()
    call = ""
    is_first = False
    for index, line in enumerate(text.lines):
        if match := _GO_PANIC.match(line):
            if not traces.items or traces.items[-1]["frames"]:
                traces.add(index, "go", match[1], match[2].removesuffix(" [recovered]"))
                is_first = True
        elif not traces.items:
            continue
        elif match := _GOROUTINE.match(line):
            is_first = is_first and not traces.items[-1]["frames"]
            traces.items[-1].setdefault("goroutine", match[1])
            traces.used.add(index)
        elif (match := _GO_PLACE.match(line)) and call:
            # Other goroutines are printed after the one that panicked; they are not part of its stack.
            if is_first or not traces.items[-1]["frames"]:
                is_first = True
                traces.frame(index, match[1], number(match[2]), call)
            traces.used.update((index - 1, index))
            call = ""
        elif match := _GO_CALL.match(line):
            call = match[1]
        elif line.startswith(("[signal ", "exit status ", "\tpanic:")):
            traces.used.add(index)
    found = [item for item in traces.items if item["frames"] or "goroutine" in item]
    traces.items = found
    return traces.parsed(text.lines)


def read_rust_trace(text: OutputText) -> Parsed | None:
    traces = Traces()
    function = ""
    takes_message = False
    for index, line in enumerate(text.lines):
        if match := _RUST_PANIC.match(line):
            traces.add(index, "rust", "panic", match["old"] or "", file=match["file"], at_line=number(match["line"]))
            traces.items[-1]["thread"] = match[1]
            takes_message = not match["old"]
        elif not traces.items:
            continue
        elif line.startswith(("note: ", "stack backtrace:")):
            takes_message = False
            traces.used.add(index)
        elif takes_message:
            item = traces.items[-1]
            item["message"] = f"{item['message']}\n{line}".strip() if len(item["message"]) < 4000 else item["message"]
            traces.used.add(index)
            takes_message = bool(line)
        elif match := _RUST_FRAME.match(line):
            function = match[1]
            traces.used.add(index)
        elif function and (match := _RUST_PLACE.match(line)):
            traces.frame(index, match[1], number(match[2]), function)
            function = ""
    return traces.parsed(text.lines)


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


def read_python_trace(text: OutputText) -> Parsed | None:
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
