"""Patterns from outside: short, and never one that can take exponential time where nothing would stop it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dari.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_CHARS = 1024
_MANY = 10
"""A repeat of at most this many times inside another is no danger."""


def check_regex(pattern: str) -> None:
    """Refuse a pattern that is too long, does not compile, or repeats what it already repeats, such as `(a+)+`."""
    if len(pattern) > LONGEST_CHARS:
        raise InvalidInput(
            f"the pattern has {len(pattern)} characters, {LONGEST_CHARS} are read", "shorten it, or wait for plain text"
        )
    try:
        re.compile(pattern)
        tree = _parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInput(
            f"{pattern!r} is no regular expression: {error}", "correct it, or wait for plain text"
        ) from error
    if why := _danger(tree, False):
        raise InvalidInput(f"{pattern!r} could take for ever: {why}", "repeat only what is not repeated inside")


def _parse(pattern: str) -> Any:
    # The parser of `re` has no public name since 3.11, and an own one would read patterns in another way.
    from re import _parser  # type: ignore[attr-defined]

    return _parser.parse(pattern)


def _danger(tree: Iterable[Any], is_repeated: bool) -> str:
    """Why the parsed pattern is dangerous; "" when it is not."""
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = argument
            is_long = int(most) > _MANY and least != most
            if is_long and is_repeated:
                return "a repeat inside a repeat"
            if is_long and _overlaps(inner):
                return "a repeated choice whose parts begin alike"
            if why := _danger(inner, is_repeated or int(most) > _MANY):
                return why
        elif name == "SUBPATTERN":
            if why := _danger(argument[-1], is_repeated):
                return why
        elif name == "BRANCH":
            for branch in argument[1]:
                if why := _danger(branch, is_repeated):
                    return why
        elif name in ("ASSERT", "ASSERT_NOT"):
            if why := _danger(argument[1], is_repeated):
                return why
        elif name == "GROUPREF" and is_repeated:
            return "a reference to a group inside a repeat"
    return ""


def _overlaps(tree: Iterable[Any]) -> bool:
    """Whether a choice directly inside a repeat has two parts that can start with the same character."""
    for operation, argument in tree:
        name = str(operation)
        if name == "SUBPATTERN" and _overlaps(argument[-1]):
            return True
        if name == "BRANCH":
            starts = [_start(list(branch)) for branch in argument[1]]
            if len(set(starts)) < len(starts) or "" in starts:
                return True
    return False


def _start(branch: list[Any]) -> str:
    """The first letter of a part of a choice; "" when it is a class, which may hold any."""
    if not branch:
        return ""
    operation, argument = branch[0]
    return chr(argument) if str(operation) == "LITERAL" else ""
