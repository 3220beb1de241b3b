"""A document as a tree that remembers where everything stands, so that errors name a line and edits touch one spot."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
Step = str | int
Path = tuple[Step, ...]


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

    def member(self, step: Step) -> Member | None:
        if isinstance(step, int):
            return self.members[step] if self.shape == "array" and 0 <= step < len(self.members) else None
        found = None
        for member in self.members if self.shape == "object" else ():
            if member.key == step:
                found = member
        return found

    def get(self, step: Step) -> Node | None:
        found = self.member(step)
        return found.value if found else None

    def line_of(self, path: Path) -> int:
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


def shown_path(path: Path) -> str:
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
