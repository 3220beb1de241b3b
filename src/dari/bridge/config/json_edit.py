"""Edit one place of a JSON text: comments, order, indentation and unknown fields stay as they are."""

from __future__ import annotations

import json
import re

from dari.bridge.config import jsonc
from dari.bridge.config.jsonc import JsonPath, JsonStep, JsonValue, Member, Node, format_path
from dari.errors import Failed, NotFound

_TAIL = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\n]*?\*/)?[ \t]*(?=\r?\n|$)")

_BETWEEN = re.compile(r"[ \t\r\n\ufeff]+|(//[^\n]*|/\*.*?\*/)", re.DOTALL)


class JsonText:
    """A document that is edited in place. Every change is parsed again and compared with what it should have done."""

    def __init__(self, text: str, file: str = "mcp.json") -> None:
        self.text = text
        self._file = file
        self.root = jsonc.parse(text, file)

    def set(self, path: JsonPath, value: JsonValue) -> None:
        """Put the value at this place: replaced if it is there, else added to the end of its object."""
        expected = self.root.plain()
        _put(_plain_at(expected, path[:-1]), path[-1], value)
        node, step = self._at(path[:-1]), path[-1]
        found = node.member(step)
        if found:
            self._replace(found.value.start, found.value.end, self._dump(value, self._indent_at(found.start)))
        else:
            self._append(node, str(step), value)
        self._check(expected)

    def append(self, path: JsonPath, value: JsonValue) -> None:
        """Add the value to the end of the array at this place."""
        expected = self.root.plain()
        array = _plain_at(expected, path)
        if not isinstance(array, list):
            raise Failed(f"{self._file}: {format_path(path)} must be a list", "edit it by hand")
        array.append(value)
        self._append(self._at(path), None, value)
        self._check(expected)

    def remove(self, path: JsonPath) -> None:
        """Take the member away, with the comment right above or behind it; what an empty line parts from it stays."""
        expected = self.root.plain()
        step = path[-1]
        if self._at(path[:-1]).member(step) is None:
            raise NotFound(f"{self._file} has no {step!r} there", "read the file again")
        _drop(_plain_at(expected, path[:-1]), step)
        # A key that stands twice goes twice, or the earlier one would come back to life.
        while (found := self._at(path[:-1]).member(step)) is not None:
            self._cut(self._at(path[:-1]), found)
            if isinstance(step, int):
                break
        self._check(expected)

    def rename(self, path: JsonPath, name: str) -> None:
        """Give the member of an object another key, at the same place."""
        found = self._at(path[:-1]).member(path[-1])
        if found is None:
            raise NotFound(f"{self._file} has no {path[-1]!r} there", "read the file again")
        self._replace(found.start, found.key_end, json.dumps(name, ensure_ascii=False))

    def _at(self, path: JsonPath) -> Node:
        node = self.root
        for step in path:
            below = node.get(step)
            if below is None:
                raise NotFound(f"{self._file} has no {step!r} there", "read the file again")
            node = below
        return node

    def _append(self, node: Node, key: str | None, value: JsonValue) -> None:
        name = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
        if not node.members:
            outer = self._indent_at(node.start)
            inner = outer + self._unit()
            body = f"{self._newline()}{inner}{name}{self._dump(value, inner)}{self._newline()}{outer}"
            inside = self.text[node.start + 1 : node.end - 1]
            if inside.strip():  # only a comment is there: it stays above
                body = inside.rstrip() + body
            self._replace(node.start + 1, node.end - 1, body)
            return
        last = node.members[-1]
        if "\n" not in self.text[node.start : last.start]:
            comma = "" if last.comma is not None else ","
            at = last.comma + 1 if last.comma is not None else last.value.end
            self._replace(at, at, f"{comma} {name}{json.dumps(value, ensure_ascii=False)}")
            return
        indent = self._indent_at(last.start)
        added = f"{self._newline()}{indent}{name}{self._dump(value, indent)}"
        if last.comma is None:
            end = self._tail_end(last.value.end, node.end)
            tail = self.text[last.value.end : end]
            self._replace(last.value.end, end, f",{tail}{added}")
        else:
            end = self._tail_end(last.comma + 1, node.end)
            self._replace(end, end, f"{added},")

    def _cut(self, node: Node, found: Member) -> None:
        index = next(i for i, member in enumerate(node.members) if member is found)
        before = node.members[index - 1] if index else None
        if before is None:
            start = node.start + 1
        else:
            start = self._tail_end((before.comma or before.value.end) + 1, found.start)
        is_last = index == len(node.members) - 1
        end = found.value.end if found.comma is None else found.comma + 1
        end = self._tail_end(end, node.end - 1 if is_last else node.members[index + 1].start)
        first, start = start, self._after_others(start, found.start)
        is_bare = first == start and not self.text[end : node.end - 1].strip()
        if is_last and before is None and is_bare:
            self._replace(start, node.end - 1, "")
        elif is_last and before is not None and found.comma is None and before.comma is not None:
            # The comma before goes too: strict readers refuse a trailing one.
            self._replace(start, end, "")
            self._replace(before.comma, before.comma + 1, "")
        else:
            self._replace(start, end, "")

    def _after_others(self, start: int, end: int) -> int:
        """Behind the comments between two members that an empty line parts from the second one."""
        has_comment = False
        for piece in _BETWEEN.finditer(self.text, start, end):
            if piece[1]:
                has_comment = True
            elif has_comment and piece[0].count("\n") > 1:
                start = self.text.rindex("\n", piece.start(), piece.end())
                start -= self.text[start - 1] == "\r"
        return start

    def _tail_end(self, at: int, most: int) -> int:
        """Past a comment that ends the line, if nothing else stands there."""
        match = _TAIL.match(self.text, at)
        return match.end() if match and match.end() <= most else at

    def _replace(self, start: int, end: int, new: str) -> None:
        self.text = self.text[:start] + new + self.text[end:]
        self.root = jsonc.parse(self.text, self._file)

    def _dump(self, value: JsonValue, indent: str) -> str:
        dumped = json.dumps(value, ensure_ascii=False, indent=self._unit())
        return dumped.replace("\n", self._newline() + indent)

    def _indent_at(self, offset: int) -> str:
        line = self.text[self.text.rfind("\n", 0, offset) + 1 : offset]
        match = re.match(r"[ \t]*", line)
        return match.group() if match else ""

    def _unit(self) -> str:
        match = re.search(r"\n([ \t]+)\S", self.text)
        return match[1] if match else "  "

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _check(self, expected: JsonValue) -> None:
        if self.root.plain() != expected:
            raise Failed(f"the change to {self._file} would have lost something and was not made", "edit it by hand")


def _plain_at(value: JsonValue, path: JsonPath) -> JsonValue:
    for step in path:
        if isinstance(value, dict):
            value = value[str(step)]
        elif isinstance(value, list):
            value = value[int(step)]
    return value


def _put(container: JsonValue, step: JsonStep, value: JsonValue) -> None:
    if isinstance(container, dict):
        container[str(step)] = value
    elif isinstance(container, list):
        container[int(step)] = value


def _drop(container: JsonValue, step: JsonStep) -> None:
    if isinstance(container, dict):
        del container[str(step)]
    elif isinstance(container, list):
        del container[int(step)]
