"""Stack traces of Python, Node, Go, Rust and Java; each item is one error with its frames, in the order printed."""

from __future__ import annotations

import re

from dari.terminal.reading.result import Document, Parsed, Text, number, ranges, share

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


def read_node_trace(text: Text) -> Parsed | None:
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


def read_java_trace(text: Text) -> Parsed | None:
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


def read_go_trace(text: Text) -> Parsed | None:
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
            # Other goroutines are printed after the one that panicked; they are no part of its stack.
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


def read_rust_trace(text: Text) -> Parsed | None:
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
