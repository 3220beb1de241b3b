"""Parse JSON with comments, trailing commas and a byte order mark into a tree that knows the place of every value."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from dari.errors import InvalidInput

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonStep = str | int
JsonPath = tuple[JsonStep, ...]


class Member(Struct):
    """One `key: value` of an object, or one element of an array (whose key is empty)."""

    key: str
    value: Node
    start: int
    """Offset of the key, or of the element."""
    key_end: int
    line: int
    comma: int | None = None
    """Offset of the comma behind it."""


class Node(Struct):
    """A scalar, or a container whose `members` are in the order of the text. Offsets are in characters."""

    line: int
    start: int
    end: int
    scalar: None | bool | int | float | str = None
    members: list[Member] = []
    shape: str = "scalar"
    """`object`, `array` or `scalar`."""

    def plain(self) -> JsonValue:
        """The value without places; of two equal keys the later one counts, as in every JSON reader."""
        if self.shape == "object":
            return {member.key: member.value.plain() for member in self.members}
        if self.shape == "array":
            return [member.value.plain() for member in self.members]
        return self.scalar

    def member(self, step: JsonStep) -> Member | None:
        if isinstance(step, int):
            return self.members[step] if self.shape == "array" and 0 <= step < len(self.members) else None
        found = None
        for member in self.members if self.shape == "object" else ():
            if member.key == step:
                found = member
        return found

    def get(self, step: JsonStep) -> Node | None:
        found = self.member(step)
        return found.value if found else None

    def line_of(self, path: JsonPath) -> int:
        """The line of what the path names, or of the deepest part of it that is there."""
        node, line = self, self.line
        for step in path:
            found = node.member(step)
            if found is None:
                break
            node, line = found.value, found.line
        return line

    def walk(self) -> Iterator[Member]:
        for member in self.members:
            yield member
            yield from member.value.walk()


def format_path(path: JsonPath) -> str:
    """`('servers', 0, 'env')` → `servers[0].env`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("_", "").replace("-", "").replace("$", "").isalnum():
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


MAX_DEPTH = 100
MAX_CHARS = 64 * 1024 * 1024
"""`~/.claude.json` keeps a history and grows to megabytes."""

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NEWLINE = re.compile("\n")


def parse(text: str, file: str) -> Node:
    """The tree of one document; `file` is only named in errors."""
    if len(text) > MAX_CHARS:
        raise InvalidInput(f"{file} has {len(text)} characters, more than {MAX_CHARS}", "name another file")
    return _Parser(text, file).document()


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._lines = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        self._at = 0

    def document(self) -> Node:
        self._skip()
        root = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._error("more text follows the end of the document")
        return root

    def _value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels")
        start, char = self._at, self._text[self._at : self._at + 1]
        if char == "{":
            return self._container(start, depth, "object", "}")
        if char == "[":
            return self._container(start, depth, "array", "]")
        node = Node(self._line(start), start, start)
        if char == '"':
            node.scalar = self._string()
        elif number := _NUMBER.match(self._text, start):
            self._at = number.end()
            node.scalar = self._number(number)
        else:
            word = next((word for word in _WORDS if self._text.startswith(word, start)), None)
            if word is None:
                raise self._error(
                    "a value is missing here" if char in ("", ",", "}", "]") else "a JSON value is expected here"
                )
            self._at += len(word)
            node.scalar = _WORDS[word]
        node.end = self._at
        return node

    def _container(self, start: int, depth: int, shape: str, close: str) -> Node:
        node = Node(self._line(start), start, start, shape=shape)
        self._at += 1
        self._skip()
        while self._peek() != close:
            if node.members and node.members[-1].comma is None:
                raise self._error(f"expected ',' or '{close}'")
            node.members.append(self._member(depth, shape))
            self._skip()
            if self._peek() == ",":
                node.members[-1].comma = self._at
                self._at += 1
                self._skip()
        self._at += 1
        node.end = self._at
        return node

    def _member(self, depth: int, shape: str) -> Member:
        start, key = self._at, ""
        if shape == "object":
            if self._peek() != '"':
                raise self._error("expected a name in double quotes")
            key = self._string()
            key_end = self._at
            self._skip()
            if self._peek() != ":":
                raise self._error(f"expected ':' behind \"{key}\"")
            self._at += 1
            self._skip()
        else:
            key_end = start
        return Member(key, self._value(depth + 1), start, key_end, self._line(start))

    def _string(self) -> str:
        match = _STRING.match(self._text, self._at)
        if match is None:
            raise self._error("this string has no end, or a character that must be escaped")
        self._at = match.end()
        token = match.group()
        text = token[1:-1] if "\\" not in token else str(json.loads(token))
        # Half a surrogate pair is valid JSON and no text: nothing could write it down again.
        return text.encode("utf-8", "replace").decode() if not text.isascii() else text

    def _number(self, match: re.Match[str]) -> int | float:
        token = match.group()
        if match[1] or match[2]:
            return float(token)
        if len(token) > 40:
            raise self._error("this number is too long")
        return int(token)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _line(self, offset: int) -> int:
        return bisect_right(self._lines, offset)

    def _error(self, fact: str) -> InvalidInput:
        line = self._line(self._at)
        column = self._at - self._lines[line - 1] + 1
        return InvalidInput(f"{self._file}:{line}:{column}: {fact}", "correct the JSON at this place")
