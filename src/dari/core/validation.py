"""Turns msgspec's validation errors into sentences that name the argument, its value and the next step."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dari.errors import InvalidInput

_AT = re.compile(r" - at `(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_ENUM = re.compile(r"Invalid enum value .*", re.DOTALL)  # which repeats the value, however long it is
_IS_ID = re.compile(r"(?:^|_)ids?$|Ids?$")
_MAX_EXACT = 2**53  # above it a float stands for several integers
_HINT = "compare the arguments with the tool's inputSchema"


def invalid_arguments(error: Exception, raw: bytes | msgspec.Raw, known: tuple[str, ...]) -> InvalidInput:
    """The error to raise for arguments that do not fit a tool whose argument names are `known`."""
    text = str(error)
    place = _AT.search(text)
    fact = _ENUM.sub("Invalid enum value", text[: place.start()] if place else text).replace("`", "")
    path = place["path"] if place else "$"
    if unknown := _UNKNOWN.search(text):
        hint = _suggest(unknown["name"], known) if path == "$" else _HINT
        return InvalidInput(f"unknown argument '{_below(path)}{unknown['name'][:60]}'", hint)
    if missing := _MISSING.search(text):
        return InvalidInput(f"argument '{_below(path)}{missing['name']}' is missing", _HINT)
    if path == "$":
        return InvalidInput(f"arguments: {fact[:1].lower()}{fact[1:]}", _HINT)
    return InvalidInput(f"argument '{path[2:]}' is {_shown(raw, path)}: {fact[:1].lower()}{fact[1:]}", _HINT)


def repair_numbers(raw: bytes | msgspec.Raw) -> bytes | None:
    """The arguments with numbers as they were meant; None when nothing is to change.

    An id is text here and a number in many a model's memory: `{"request_id": 6}` means `"6"`. JSON has one type of
    number, and JSON Schema says that 2.0 is an integer: some clients send every number as a float.
    """
    try:
        given = msgspec.json.decode(raw)
        if not isinstance(given, dict):
            return None
        meant = {name: _as_text(value) if _IS_ID.search(name) else value for name, value in _whole(given).items()}
        repaired = msgspec.json.encode(meant)
        return None if repaired == msgspec.json.encode(given) else repaired
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return None


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT
    return int(value) if is_whole else value


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _below(path: str) -> str:
    return "" if path == "$" else path.removeprefix("$.") + "."


def _suggest(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known arguments: {', '.join(known)}" if known else "this tool takes no arguments"


def _shown(raw: bytes | msgspec.Raw, path: str) -> str:
    try:
        node: Any = msgspec.json.decode(raw)
        for key, index in _STEP.findall(path):
            node = node[key] if key else node[int(index)]
        text = msgspec.json.encode(node).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError, LookupError, TypeError, ValueError):
        return "not valid"
    return text if len(text) <= 60 else text[:57] + "..."
