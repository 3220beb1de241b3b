"""How badly a regular expression can backtrack, told from its shape before it is ever run.

`re` cannot be interrupted and blocks every connection while it searches, so this is decided when a rule is added.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_parser: Any = importlib.import_module("re._parser")
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
_MANY = 100
"""A repeat of this many times or more counts as endless."""
_MANY_WAYS = 100_000
"""Ways to try before giving up that are still harmless: (\\d{1,3}\\.?){3} has 216, (a|a)* has no end of them."""
_CHARS = range(256)


class PatternShape(NamedTuple):
    """Time grows with the length of the text to the power of `degree`; exponentially if `is_exponential`."""

    degree: int
    is_exponential: bool
    starts_anywhere: bool
    """False when only a match from the start of the text is possible, or equal to any other."""
    literal: str
    """The longest run of characters that every match contains; `in` is ten times cheaper than a search."""


def shape_of(pattern: str) -> PatternShape:
    tree = _parser.parse(pattern)
    folds_case = bool(tree.state.flags & re.IGNORECASE)
    walk = _Walk(folds_case)
    degree = walk.degree(list(tree), times=1)
    anchored = _is_anchored(list(tree))
    literal = "" if folds_case or "(?i" in pattern else _literal(tree)
    return PatternShape(degree + (not anchored), walk.is_exponential, not anchored, literal)


class _Walk:
    def __init__(self, folds_case: bool) -> None:
        self._folds_case = folds_case
        self._ways = 1.0

    @property
    def is_exponential(self) -> bool:
        return self._ways > _MANY_WAYS

    def _choose(self, choices: float, times: float) -> None:
        """Each of `times` rounds may go any of so many ways, and a failure tries them all."""
        self._ways = min(self._ways * min(choices, 1e3) ** min(times, 90), 1e300)

    def degree(self, items: Sequence[Any], times: float) -> int:
        """How many loops can each give back what they took; `times` is how often all this is itself repeated."""
        total = 0
        for place, (op, detail) in enumerate(items):
            name = str(op)
            rest = items[place + 1 :]
            if name in _REPEATS or name == "POSSESSIVE_REPEAT":
                least, most, body = detail
                many = min(float(most), 1e9)
                is_open = name in _REPEATS and least != most and not self._is_guarded(body, rest)
                if is_open and (many < _MANY or times > 1):
                    self._choose(many - least + 1, times)
                if is_open and many >= _MANY and (rest or times > 1):
                    total += 1
                total += self.degree(list(body), times * many)
            elif name == "BRANCH":
                branches = [list(branch) for branch in detail[1]]
                if not self._are_apart(branches):
                    self._choose(len(branches), times)
                total += max(self.degree(branch + list(rest[:1]), times) for branch in branches)
            elif (inner := _inner(name, detail)) is not None:
                # What follows a group also follows its last item.
                total += self.degree([*inner, *rest[:1]] if rest and _is_plain(rest[0]) else list(inner), times)
            elif name == "GROUPREF_EXISTS":
                total += sum(self.degree(list(part), times) for part in detail[1:] if part is not None)
        return total

    def _is_guarded(self, body: Any, rest: Sequence[Any]) -> bool:
        """[^/]+ before a slash can stop in one place only, so it never gives anything back."""
        taken, after = self._first(list(body)), self._first(rest)
        return len(body) == 1 and taken is not None and after is not None and not taken & after

    def _are_apart(self, branches: list[list[Any]]) -> bool:
        seen: set[int] = set()
        for branch in branches:
            first = self._first(branch)
            if first is None or first & seen:
                return False
            seen |= first
        return True

    def _first(self, items: Sequence[Any]) -> frozenset[int] | None:
        """Characters the items can start with; None if unknown, or if they may be empty."""
        for op, detail in items:
            name = str(op)
            if name == "AT":
                continue
            if name in _REPEATS:
                return self._first(list(detail[2])) if detail[0] else None
            inner = _inner(name, detail)
            return self._first(list(inner)) if inner is not None else self._chars(name, detail)
        return None

    def _chars(self, name: str, detail: Any) -> frozenset[int] | None:
        if name not in {"LITERAL", "NOT_LITERAL", "ANY", "IN"}:
            return None
        chars = frozenset(code for code in _CHARS if _matches(name, detail, code))
        if self._folds_case:
            chars |= {ord(other) for code in chars for other in chr(code).swapcase() if ord(other) in _CHARS}
        return chars


def _matches(name: str, detail: Any, code: int) -> bool:
    if name == "LITERAL":
        return bool(code == detail)
    if name == "NOT_LITERAL":
        return bool(code != detail)
    if name == "RANGE":
        return bool(detail[0] <= code <= detail[1])
    if name == "CATEGORY":
        return _in_category(str(detail), chr(code))
    if name == "IN":
        is_negated = str(detail[0][0]) == "NEGATE"
        return is_negated != any(_matches(str(op), inner, code) for op, inner in detail[is_negated:])
    return True


def _in_category(category: str, char: str) -> bool:
    kind = category.rpartition("_")[2]
    found = (
        char.isdecimal() if kind == "DIGIT" else char.isspace() if kind == "SPACE" else char.isalnum() or char == "_"
    )
    return found != ("_NOT_" in category)


def _inner(name: str, detail: Any) -> Any:
    if name == "SUBPATTERN":
        return detail[-1]
    if name in {"ASSERT", "ASSERT_NOT"}:
        return detail[1]
    return detail if name == "ATOMIC_GROUP" else None


def _is_plain(item: Any) -> bool:
    return str(item[0]) in {"LITERAL", "NOT_LITERAL", "IN"}


def _is_anchored(items: list[Any]) -> bool:
    """`^`, or a leading `.*`: what matches anywhere then matches from the start too, as URLs hold no line break."""
    if not items:
        return False
    op, detail = items[0]
    if str(op) == "AT":
        return str(detail) in {"AT_BEGINNING", "AT_BEGINNING_STRING"}
    if str(op) != "MAX_REPEAT":
        return False
    return detail[0] == 0 and detail[1] >= 1 << 30 and [str(inner) for inner, _ in detail[2]] == ["ANY"]


def _literal(items: Any) -> str:
    best = run = ""
    for op, detail in items:
        if str(op) == "LITERAL":
            run += chr(detail)
            best = max(best, run, key=len)
        elif str(op) != "AT":
            run = ""
    return best
