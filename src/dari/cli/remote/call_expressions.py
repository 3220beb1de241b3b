"""`server.tool(path: "a b", head: 3)`: a call as a program would write it, in one quoted word.

Arguments are named (`name: value` or `name=value`) or stand in the order of the tool's schema. A value is JSON, a text
in single quotes, or a bare word, which the schema reads as it reads the value of a flag.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from dari.cli.remote.schemas import Shape
from dari.errors import InvalidInput

_CALL = re.compile(r"(?P<address>[^\s()]+)\((?P<inside>.*)\)\s*", re.DOTALL)
_NAME = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*[:=]\s*")
_SINGLE = re.compile(r"'((?:[^'\\]|\\.)*)'")
_BARE = re.compile(r"[^,()\[\]{}\"'\s]+")
_NEXT = re.compile(r"\s*(,|$)\s*")
_SPACE = re.compile(r"\s*")
_EXAMPLE = """quote the whole call: 'server.tool(name: "value", count: 3)'"""


class Expression(NamedTuple):
    address: str
    """`server.tool`, `server/tool` or `tool`."""
    arguments: list[tuple[str | None, str]]
    """Name, or None for one that stands in its place; the value as a flag would have it."""


def read_call(word: str) -> Expression | None:
    """The parts of a call; None for a word that is only a name. InvalidInput names the place that cannot be read."""
    if "(" not in word:
        return None
    found = _CALL.fullmatch(word)
    if found is None:
        raise InvalidInput(f"a call ends with ')', got {word[-30:]!r}", _EXAMPLE)
    return Expression(found["address"], _arguments(found["inside"]))


def as_words(expression: Expression, shape: Shape, tool: str) -> list[str]:
    """The arguments as flags; those without a name get that of their place in the schema."""
    names = [each.name for each in shape.arguments]
    words: list[str] = []
    for at, (name, value) in enumerate(expression.arguments):
        if name is None:
            if at >= len(names):
                raise InvalidInput(
                    f"'{tool}' takes {len(names)} arguments, got {len(expression.arguments)}",
                    f"name them: {', '.join(names[:12]) or 'it takes none'}",
                )
            name = names[at]
        words.append(f"--{name}={value}")
    return words


def _arguments(inside: str) -> list[tuple[str | None, str]]:
    found: list[tuple[str | None, str]] = []
    at = _SPACE.match(inside, 0).end()  # type: ignore[union-attr]
    while at < len(inside):
        named = _NAME.match(inside, at)
        name = None
        if named is not None:
            name, at = named[1], named.end()
        value, at = _value(inside, at)
        found.append((name, value))
        following = _NEXT.match(inside, at)
        if following is None:
            raise _unreadable(inside, at, "a comma between two arguments")
        at = following.end()
    return found


def _value(inside: str, at: int) -> tuple[str, int]:
    single = _SINGLE.match(inside, at)
    if single is not None:
        return re.sub(r"\\(.)", r"\1", single[1]), single.end()
    try:
        value, end = _DECODER.raw_decode(inside, at)
    except (ValueError, RecursionError):
        pass
    else:
        if _NEXT.match(inside, end) is not None:  # 1.5.2 and trueish are words
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), end
    bare = _BARE.match(inside, at)
    if bare is None:
        raise _unreadable(inside, at, "a value")
    return bare[0], bare.end()


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _unreadable(inside: str, at: int, wanted: str) -> InvalidInput:
    return InvalidInput(f"{wanted} is needed at {inside[at : at + 20]!r}", _EXAMPLE)
