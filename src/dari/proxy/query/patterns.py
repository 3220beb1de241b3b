"""Regular expressions of strangers, matched in linear time.

Python's `re` backtracks, cannot be interrupted and holds the interpreter lock: `(a+)+$` on the wrong URL would stop
the proxy for hours. So `re` only reads the pattern. What it read becomes an automaton (Thompson 1968) whose states are
made when they are first needed: each character of the text is looked at once, whatever the pattern.
"""

from __future__ import annotations

import re
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from dari.errors import InvalidInput

PATTERN_CHARS = 300
NODES = 2000
_STATES = 2000
_HINT = "use url_contains, or a pattern without look-around, back-references and large counts"
_BEGIN, _WORD, _OTHER = range(3)


class LinearRegex:
    """A compiled pattern that knows one question: does it occur in the text? Case does not matter."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > PATTERN_CHARS:
            raise InvalidInput(f"a pattern may have {PATTERN_CHARS} characters, this one has {len(pattern)}", _HINT)
        try:
            tree = _parser.parse(pattern, re.IGNORECASE)
        except (re.error, RecursionError, OverflowError) as error:
            raise InvalidInput(f"{pattern!r} is no regular expression: {error}", _HINT) from error
        self._pattern = pattern
        self._state = tree.state
        self._flags: int = tree.state.flags
        # Per node: what it needs of the next character, or of the place, and where it leads.
        self._chars: list[re.Pattern[str] | None] = []
        self._places: list[Any] = []
        self._next: list[list[int]] = []
        self._accept = self._node()
        self._start = self._sequence(tree, self._accept)
        self._forget()

    def occurs_in(self, text: str) -> bool:
        """Whether some part of the text matches."""
        state = self._first
        for character in text:
            known = self._tables[state].get(character)
            if known is None:
                known = self._step(state, character)
            if known < 0:
                return True
            state = known
        nodes, before = self._states[state]
        return self._accept in self._reached(nodes, before, None)

    def _step(self, state: int, character: str) -> int:
        """The state after this character, remembered; -1 when the pattern has matched before it."""
        nodes, before = self._states[state]
        reached = self._reached(nodes, before, character)
        if self._accept in reached:
            self._tables[state][character] = -1
            return -1
        moved = {self._start}  # a match may begin at any place
        for node in reached:
            test = self._chars[node]
            if test is not None and test.fullmatch(character):
                moved.update(self._next[node])
        if len(self._states) >= _STATES:
            self._forget()
            return self._number(frozenset(moved), _kind(character))
        following = self._number(frozenset(moved), _kind(character))
        self._tables[state][character] = following
        return following

    def _reached(self, nodes: frozenset[int], before: int, character: str | None) -> set[int]:
        """All nodes that need no further character to get to, at a place between two characters."""
        reached: set[int] = set()
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if node in reached or not _holds(self._places[node], before, character):
                continue
            reached.add(node)
            if self._chars[node] is None:
                pending += self._next[node]
        return reached

    def _number(self, nodes: frozenset[int], before: int) -> int:
        number = self._numbers.setdefault((nodes, before), len(self._states))
        if number == len(self._states):
            self._states.append((nodes, before))
            self._tables.append({})
        return number

    def _forget(self) -> None:
        self._numbers: dict[tuple[frozenset[int], int], int] = {}
        self._states: list[tuple[frozenset[int], int]] = []
        self._tables: list[dict[str, int]] = []
        self._first = self._number(frozenset({self._start}), _BEGIN)

    def _node(self, *following: int, char: re.Pattern[str] | None = None, place: Any = None) -> int:
        if len(self._next) >= NODES:
            raise InvalidInput(f"{self._pattern!r} is too large when its counts are written out", _HINT)
        self._next.append(list(following))
        self._chars.append(char)
        self._places.append(place)
        return len(self._next) - 1

    def _sequence(self, tree: Any, following: int) -> int:
        """The node where this part begins, when `following` is where it ends; built from its end."""
        for operator, argument in reversed(list(tree)):
            following = self._part(operator, argument, following)
        return following

    def _part(self, operator: Any, argument: Any, following: int) -> int:
        if operator in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY):
            # One character: `re` is safe, and knows what case and classes mean.
            single = _parser.SubPattern(self._state, [(operator, argument)])
            return self._node(following, char=_compiler.compile(single, self._flags))
        if operator is _constants.BRANCH:
            return self._node(*[self._sequence(one, following) for one in argument[1]])
        if operator is _constants.SUBPATTERN and not argument[1] and not argument[2]:
            return self._sequence(argument[3], following)
        if operator in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            least, most, tree = argument
            return self._repeat(least, most, tree, following)
        if operator is _constants.AT:
            return self._node(following, place=argument)
        name = str(operator).lower().replace("_", " ")
        raise InvalidInput(f"{self._pattern!r} uses something that cannot be matched in bounded time: {name}", _HINT)

    def _repeat(self, least: int, most: Any, tree: Any, following: int) -> int:
        if most is _constants.MAXREPEAT:
            loop = self._node(following)
            self._next[loop].append(self._sequence(tree, loop))
            start = loop
        else:
            start = following
            for _ in range(int(most) - least):
                start = self._node(following, self._sequence(tree, start))
        for _ in range(least):
            start = self._sequence(tree, start)
        return start


def _kind(character: str) -> int:
    return _WORD if character.isalnum() or character == "_" else _OTHER


def _holds(place: Any, before: int, character: str | None) -> bool:
    if place is None:
        return True
    if place in (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING):
        return before == _BEGIN
    if place in (_constants.AT_END, _constants.AT_END_STRING):
        return character is None
    is_boundary = (before == _WORD) != (character is not None and _kind(character) == _WORD)
    return is_boundary if place is _constants.AT_BOUNDARY else not is_boundary
