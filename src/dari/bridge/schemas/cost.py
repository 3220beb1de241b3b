"""How much work a schema of a stranger can cause, found out before it is run.

A JSON Schema is a program: eight references on each of forty levels are a few kilobytes and 8**40 steps, and a
reference to itself can double its steps with each level of the value.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 100
UNBOUNDED = 1 << 62
_DEFINITIONS = ("$defs", "definitions")
# References whose target depends on where one comes from, and keywords that run others a second time.
_UNPREDICTABLE = ("$dynamicRef", "$recursiveRef", "$anchor", "unevaluatedProperties", "unevaluatedItems")
_UNDER_WAY = -1


def cost_of(schema: Any) -> int:
    """How many positions the schema has with every reference written out; `UNBOUNDED` where that cannot be counted."""
    return _Count(schema).of(schema, 0)


def value_count(data: bytes) -> int:
    """At most so many values are in this JSON text. Counts commas in texts too, and reads 1 GB in a second."""
    return 1 + data.count(b",") + data.count(b":") + data.count(b"[") + data.count(b"{")


class _Count:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[str, int] = {}

    def of(self, node: Any, depth: int) -> int:
        if depth > MAX_DEPTH:
            return UNBOUNDED
        total = 1
        if isinstance(node, dict):
            if any(name in node for name in _UNPREDICTABLE) or (depth and "$id" in node):
                return UNBOUNDED
            for key, each in node.items():
                if key == "$ref":
                    total += self._referred(each, depth)
                elif key not in _DEFINITIONS:
                    total += self.of(each, depth + 1)
        elif isinstance(node, list):
            for each in node:
                total += self.of(each, depth + 1)
        return min(total, UNBOUNDED)

    def _referred(self, reference: Any, depth: int) -> int:
        if not isinstance(reference, str):
            return self.of(reference, depth + 1)  # an argument that is called `$ref`
        known = self._known.get(reference)
        if known is None:
            self._known[reference] = _UNDER_WAY
            known = self._known[reference] = self._target(reference, depth)
        return UNBOUNDED if known == _UNDER_WAY else known

    def _target(self, reference: str, depth: int) -> int:
        node = self._root
        if reference[:1] != "#":
            return UNBOUNDED
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
                node = node[int(step)]
            else:
                return UNBOUNDED
        return self.of(node, depth + 1)
