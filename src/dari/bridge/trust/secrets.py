"""JSON without its secrets, for the audit log and for the questions that people are shown."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from dari.redaction import MARK, is_plain, is_secret_name, redact_text

_DEPTH = 64


def redact_json(data: bytes) -> bytes:
    """The JSON with secrets replaced; the very bytes when there are none. What is no JSON is not passed on."""
    value = msgspec.json.decode(data)
    if _is_harmless(value):
        return data
    redacted = _value(value, 0)
    return data if redacted == value else msgspec.json.encode(redacted)


def _is_harmless(value: Any) -> bool:
    """A short answer for most arguments there are: an object of everyday names with plain texts and numbers."""
    if type(value) is not dict:
        return False
    for name, each in value.items():
        if not _is_everyday(name):
            return False
        kind = type(each)
        if kind is str:
            if not is_plain(each):
                return False
        elif kind is not int and kind is not bool and kind is not float and each is not None:
            return False
    return True


def redact_value(value: object) -> object:
    """A parsed JSON value with secrets replaced: values of secret names whole, the rest by their shape."""
    return _value(value, 0)


def _value(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (dict, list)) and depth >= _DEPTH:
        return MARK  # too deep to look through, so not shown
    if isinstance(value, dict):
        return {
            _name(str(key)): MARK if _is_secret(str(key), each) else _value(each, depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_value(each, depth + 1) for each in value]
    return value


def _is_secret(name: str, value: object) -> bool:
    """Flags and empty values tell nothing; a number under a plural is a count, such as `max_tokens`."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    if isinstance(value, (int, float)) and name.lower().endswith("s"):
        return False
    return _is_secret_name(name)


def _text(text: str) -> str:
    return text if is_plain(text) else redact_text(text).text


_is_secret_name = lru_cache(maxsize=4096)(is_secret_name)


@lru_cache(maxsize=4096)
def _is_everyday(name: str) -> bool:
    return is_plain(name) and not is_secret_name(name)


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    """Names repeat from call to call, and are hardly ever secrets; values are not remembered."""
    return _text(name)
