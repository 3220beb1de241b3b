"""Where two JSON values differ, by path."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final

Path = tuple[str | int, ...]
# Aligning two long lists is quadratic; past this they are compared place by place.
_ALIGNED = 200


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for a value that one side does not have; JSON's null is a value."""


def differences(a: Any, b: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """(path, old, new) for each value that was added, removed or changed, in document order.

    A path into a list counts places of the old list, or of the new one where only that has the item.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            yield from differences(a.get(key, ABSENT), b.get(key, ABSENT), (*path, key))
    elif isinstance(a, list) and isinstance(b, list):
        yield from _lists(a, b, path)
    elif type(a) is not type(b) or a != b:
        yield path, a, b


def at(value: Any, path: Path) -> Any:
    """What stands at the path, ABSENT when nothing does."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def path_text(path: Path) -> str:
    """`$.items[2].name`, with quotes around keys that need them."""
    text = "$"
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if step.isidentifier() else f"[{step!r}]"
    return text


def _lists(a: list[Any], b: list[Any], path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if len(a) == len(b) or max(len(a), len(b)) > _ALIGNED:
        for place in range(max(len(a), len(b))):
            old = a[place] if place < len(a) else ABSENT
            new = b[place] if place < len(b) else ABSENT
            yield from differences(old, new, (*path, place))
        return
    matcher = difflib.SequenceMatcher(None, [repr(one) for one in a], [repr(one) for one in b], autojunk=False)
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if kind == "equal":
            continue
        paired = min(a_to - a_from, b_to - b_from)
        for offset in range(paired):
            yield from differences(a[a_from + offset], b[b_from + offset], (*path, a_from + offset))
        for place in range(a_from + paired, a_to):
            yield (*path, place), a[place], ABSENT
        for place in range(b_from + paired, b_to):
            yield (*path, place), ABSENT, b[place]
