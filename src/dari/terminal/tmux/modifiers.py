"""Modifiers inside `#{…}`: how they are written, and what each does to a value."""

from __future__ import annotations

import os.path
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from dari.errors import InvalidInput
from dari.text.regex import GuardedRegex
from dari.text.width import take_columns, text_width

MAX_PAD_COLUMNS = 10_000
_MAX_PLACES = 100
_ALONE = frozenset("labcdnwETSWP<>")
_DOUBLE = ("||", "&&", "!=", "==", "<=", ">=")
_WITH_ARGUMENTS = frozenset("mCNst=peq")
_SHELL = frozenset("|&;<>()$`\\\"'*?[# =%")


@dataclass(frozen=True, slots=True)
class Modifier:
    name: str
    arguments: tuple[str, ...] = ()


def find_end(text: str, at: int, ends: str) -> int:
    """The first of `ends` from `at` on that is not inside another `#{…}`; -1 when there is none."""
    depth = 0
    while at < len(text):
        if text[at] == "#" and at + 1 < len(text) and text[at + 1] in ",#{}:":
            depth += text[at + 1] == "{"
            at += 2
            continue
        if text[at] == "}":
            depth -= 1
        if text[at] in ends and depth == 0:
            return at
        at += 1
    return -1


def split_modifiers(text: str) -> tuple[list[Modifier], str]:
    """The modifiers at the start of what stands inside `#{…}`, and the rest; none when it has no `:` after them."""
    found: list[Modifier] = []
    at = 0
    while at < len(text) and text[at] != ":":
        if text[at] == ";":
            at += 1
        if text[at : at + 1] in _ALONE and _is_end(text, at + 1):
            found.append(Modifier(text[at]))
            at += 1
        elif text[at : at + 2] in _DOUBLE and _is_end(text, at + 2):
            found.append(Modifier(text[at : at + 2]))
            at += 2
        elif text[at : at + 1] in _WITH_ARGUMENTS:
            modifier, at = _with_arguments(text, at)
            if modifier is None:
                break
            found.append(modifier)
        else:
            break
    return (found, text[at + 1 :]) if text[at : at + 1] == ":" else ([], text)


def _with_arguments(text: str, at: int) -> tuple[Modifier | None, int]:
    name = text[at]
    if _is_end(text, at + 1):
        return Modifier(name), at + 1
    first = text[at + 1 : at + 2]
    if not _is_punctuation(first) or first == "-":
        end = find_end(text, at + 1, ":;")
        return (Modifier(name, (text[at + 1 : end],)), end) if end >= 0 else (None, at)
    arguments: list[str] = []
    at += 1
    while True:
        if text[at : at + 1] == first and _is_end(text, at + 1):
            at += 1
            break
        end = find_end(text, at + 1, first + ":;")
        if end < 0:
            break
        arguments.append(text[at + 1 : end])
        at = end
        if _is_end(text, at):
            break
    return Modifier(name, tuple(arguments)), at


def _is_end(text: str, at: int) -> bool:
    return text[at : at + 1] in (";", ":")


def _is_punctuation(char: str) -> bool:
    return char != "" and char.isascii() and char.isprintable() and not char.isalnum() and char != " "


def is_true(value: str) -> bool:
    return value not in ("", "0")


def apply_found(value: str, modifiers: Sequence[Modifier]) -> str:
    """What is done to the value of a variable itself: `t:`, `b:`, `d:`, `q:`."""
    names = {modifier.name: modifier for modifier in modifiers}
    if "t" in names:
        value = _time(value, names["t"].arguments)
    if "b" in names:
        value = os.path.basename(value.rstrip("/")) or ("/" if value else ".")
    if "d" in names:
        value = os.path.dirname(value.rstrip("/")) or ("/" if value.startswith("/") else ".")
    if "q" in names:
        if any(flag in "".join(names["q"].arguments) for flag in "eh"):
            value = value.replace("#", "##")
        else:
            value = "".join("\\" + char if char in _SHELL else char for char in value)
    return value


def apply_after(value: str, modifiers: Sequence[Modifier], expand: Callable[[str], str]) -> str:
    """What is done at the end: `s/…/…/`, `=N`, `pN`, `n`, `w`."""
    limit = width = 0
    marker = ""
    names = set()
    for modifier in modifiers:
        names.add(modifier.name)
        if modifier.name == "s" and len(modifier.arguments) >= 2:
            value = _substituted(value, modifier.arguments, expand)
        elif modifier.name == "=" and modifier.arguments:
            limit = _number(modifier.arguments[0])
            marker = modifier.arguments[1] if len(modifier.arguments) > 1 else ""
        elif modifier.name == "p" and modifier.arguments:
            width = max(-MAX_PAD_COLUMNS, min(_number(modifier.arguments[0]), MAX_PAD_COLUMNS))
    if limit:
        short = take_columns(value, limit) if limit > 0 else take_columns(value[::-1], -limit)[::-1]
        value = value if short == value else short + marker if limit > 0 else marker + short
    if width:
        blanks = " " * max(0, abs(width) - text_width(value))
        value = value + blanks if width > 0 else blanks + value
    if "n" in names:
        value = str(len(value.encode()))
    if "w" in names:
        value = str(text_width(value))
    return value


def match(arguments: Sequence[str], pattern: str, text: str) -> bool:
    """`m:`: a glob; `m/r:`: a regular expression; `i` ignores case."""
    flags = "".join(arguments)
    try:
        if "r" in flags:
            return _regex(pattern, "i" in flags).search(text) is not None
        return re.fullmatch(translate(pattern), text, re.DOTALL | (re.IGNORECASE if "i" in flags else 0)) is not None
    except (InvalidInput, re.error):
        return False


def evaluate(arguments: Sequence[str], left: str, right: str) -> str:
    """`e|+|f|2:`: arithmetic with whole numbers, or with `f` and so many places."""
    if not arguments:
        return ""
    is_float = len(arguments) > 1 and "f" in arguments[1]
    places = 0
    if is_float:
        places = min(_number(arguments[2]), _MAX_PLACES) if len(arguments) > 2 and arguments[2].isdigit() else 2
    operator = arguments[0]
    try:
        first, second = float(left), float(right)
        if not is_float:
            first, second = float(int(first)), float(int(second))
        result = {
            "+": lambda: first + second,
            "-": lambda: first - second,
            "*": lambda: first * second,
            "/": lambda: first / second,
            "m": lambda: _remainder(first, second),
            "%": lambda: _remainder(first, second),
            "%%": lambda: _remainder(first, second),
            "==": lambda: float(abs(first - second) < 1e-9),
            "!=": lambda: float(abs(first - second) > 1e-9),
            ">": lambda: float(first > second),
            "<": lambda: float(first < second),
            ">=": lambda: float(first >= second),
            "<=": lambda: float(first <= second),
        }[operator]()
        result = result if is_float else float(int(result))
    except (KeyError, ValueError, ZeroDivisionError, OverflowError):  # ValueError: no number, or `nan` as a whole one
        return ""
    return f"{result:.{places}f}"


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"-?\d{1,7}", text) else 0


def _remainder(first: float, second: float) -> float:
    return first - second * int(first / second)


def _time(value: str, arguments: Sequence[str]) -> str:
    if not re.fullmatch(r"[0-9]{1,11}", value) or value == "0":
        return ""
    moment = time.localtime(int(value))
    if arguments and "f" in arguments[0] and len(arguments) > 1:
        return time.strftime(arguments[1], moment)
    if arguments and "p" in arguments[0]:
        return _pretty(int(value))
    return time.strftime("%a %b %e %H:%M:%S %Y", moment)


def _pretty(moment: int) -> str:
    now = time.time()
    age_s = now - moment
    then = time.localtime(moment)
    if age_s < 24 * 3600:
        return time.strftime("%H:%M", then)
    today = time.localtime(now)
    if (then.tm_year, then.tm_mon) == (today.tm_year, today.tm_mon) or age_s < 28 * 24 * 3600:
        return time.strftime("%a%d", then)
    if age_s < 365 * 24 * 3600:
        return time.strftime("%d%b", then)
    return time.strftime("%h%y", then)


def _substituted(value: str, arguments: Sequence[str], expand: Callable[[str], str]) -> str:
    ignores_case = len(arguments) > 2 and "i" in arguments[2]
    pattern, replacement = expand(arguments[0]), expand(arguments[1])
    try:
        return _regex(pattern, ignores_case).sub(lambda found: _filled(replacement, found), value) if value else ""
    except (InvalidInput, IndexError):
        return value


@lru_cache(maxsize=64)
def _regex(pattern: str, ignores_case: bool) -> GuardedRegex:
    """A format is filled in again and again, and with every key that is pressed; a slow pattern may not hold it up."""
    return GuardedRegex(pattern, ignore_case=ignores_case)


def _filled(replacement: str, found: re.Match[str]) -> str:
    return re.sub(r"\\([0-9])", lambda number: found[int(number[1])] or "", replacement)
