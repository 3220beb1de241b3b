"""One text for one JSON value (RFC 8785, JCS), and its SHA-256.

Two deviations: whole numbers keep all their digits, where the RFC would give 2**53 and 2**53 + 1 the same text, and
a lone surrogate, which UTF-8 cannot carry, is written as its `\\uXXXX` escape instead of being refused.
"""

from __future__ import annotations

import hashlib
import math
import re

from dari.errors import InvalidInput

_ESCAPED = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
MAX_DEPTH = 200
"""Deeper than any schema, and far from where Python's own stack ends."""


def canonical(value: object) -> bytes:
    """The value as its one text. Dicts, lists, tuples, text, numbers, booleans and None; anything else is refused."""
    pieces: list[str] = []
    _write(value, pieces, 0)
    return "".join(pieces).encode()


def digest(value: object) -> str:
    """The SHA-256 of the one text, in hex."""
    return digest_of_text(canonical(value))


def digest_of_text(content: bytes) -> str:
    """The same of a text that `canonical` made."""
    return hashlib.sha256(content).hexdigest()


def _write(value: object, pieces: list[str], depth: int) -> None:
    if isinstance(value, str):
        pieces.append(_text(value))
    elif value is True:
        pieces.append("true")
    elif value is False:
        pieces.append("false")
    elif value is None:
        pieces.append("null")
    elif isinstance(value, int):
        pieces.append(str(int(value)))
    elif isinstance(value, float):
        pieces.append(_number(value))
    elif isinstance(value, (dict, list, tuple)):
        if depth >= MAX_DEPTH:
            raise InvalidInput(
                f"JSON nested deeper than {MAX_DEPTH} levels", "no server needs that; look at what it sends"
            )
        if isinstance(value, dict):
            _write_object(value, pieces, depth)
        else:
            _write_array(value, pieces, depth)
    else:
        raise InvalidInput(f"a JSON value is required, got {type(value).__name__}", "give what a JSON parser returned")


def _write_object(value: dict[object, object], pieces: list[str], depth: int) -> None:
    mark = "{"
    for key in sorted(value, key=_order):
        pieces.append(f"{mark}{_text(str(key))}:")
        mark = ","
        _write(value[key], pieces, depth + 1)
    pieces.append("{}" if mark == "{" else "}")


def _write_array(value: list[object] | tuple[object, ...], pieces: list[str], depth: int) -> None:
    mark = "["
    for item in value:
        pieces.append(mark)
        mark = ","
        _write(item, pieces, depth + 1)
    pieces.append("[]" if mark == "[" else "]")


def _order(key: object) -> bytes:
    """Keys sort by UTF-16 code units, which differs from code points above U+FFFF alone."""
    if not isinstance(key, str):
        raise InvalidInput(f"a key must be text, got {key!r}", "give what a JSON parser returned")
    return key.encode("utf-16-be", "surrogatepass")


def _text(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def _number(number: float) -> str:
    """ECMAScript's Number::toString; Python finds the same shortest digits but lays them out differently."""
    if not math.isfinite(number):
        raise InvalidInput(f"a number must be finite, got {number}", "give what a JSON parser returned")
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    digits, exponent = _shortest(abs(number))
    point = exponent + 1  # where the decimal point stands, counted in digits
    if 0 < point <= 21:
        whole = digits[:point].ljust(point, "0")
        return f"{sign}{whole}.{digits[point:]}" if len(digits) > point else sign + whole
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'+' if exponent >= 0 else '-'}{abs(exponent)}"


def _shortest(number: float) -> tuple[str, int]:
    """The fewest digits that give the number back, and the power of ten of the first one."""
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    zeros = len(whole + fraction) - len(digits)
    return digits.rstrip("0"), int(exponent or 0) + len(whole) - zeros - 1
