"""JSON as editors write it: comments, trailing commas and a byte order mark are taken; everything keeps its place."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from dari.bridge.profiles.nodes import Member, Node
from dari.errors import InvalidInput

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
                raise self._error("a value is missing here" if char in ("", ",", "}", "]") else "this is no JSON value")
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
