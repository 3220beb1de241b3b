"""Escapes inside `$'…'` and fish words, and what braces would expand to."""

from __future__ import annotations

import re

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_BRACE_PART = re.compile(r"[{},\s]|\.\.")


def decode_ansi_c(body: str) -> str:
    """The value of `$'body'` in bash and zsh."""
    return _ESCAPE.sub(_decoded, body)


def decode_fish(text: str) -> str:
    """The value of one escape such as `\\n` or `\\x41` outside quotes in fish; others stand for themselves."""
    return _ESCAPE.sub(_decoded, text) if text[1:2] in "abefnrtvxXuU01234567c" else text[1:]


def may_expand_braces(raw: str) -> bool:
    """Whether unquoted text holds `{a,b}` or `{1..3}`, or braces inside braces."""
    is_open = has_choice = False
    for match in _BRACE_PART.finditer(raw):
        part = match[0]
        if part == "{":
            if is_open:
                return True
            is_open, has_choice = True, False
        elif part == "}":
            if is_open and has_choice:
                return True
            is_open = False
        elif part.isspace():
            is_open = False
        else:
            has_choice = True
    return False


def _decoded(match: re.Match[str]) -> str:
    two, four, eight, octal, control, other = match.groups()
    for digits, base in ((two, 16), (four, 16), (eight, 16), (octal, 8)):
        if digits is not None:
            number = int(digits, base)
            return chr(number) if number <= 0x10FFFF else ""
    if control is not None:
        return chr(ord(control.upper()) & 0x1F)
    return _SIMPLE.get(other, other if other in "\\'\"?" else "\\" + other)
