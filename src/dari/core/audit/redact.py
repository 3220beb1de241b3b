"""JSON without its secrets, for the audit log and for the questions that people are shown."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from dari.text.redact import is_surely_clean, redact_secrets
from dari.text.redact.names import Sensitivity, sensitivity


def redact_json(data: bytes) -> bytes:
    """The JSON with secrets replaced; the very bytes when there are none. What is no JSON is not passed on."""
    value = msgspec.json.decode(data)
    if _is_harmless(value):
        return data
    redacted = redact_secrets(value)
    return data if redacted is value else msgspec.json.encode(redacted)


def _is_harmless(value: Any) -> bool:
    """A short answer for most arguments there are: an object of everyday names with plain texts and numbers."""
    if type(value) is not dict:
        return False
    for name, each in value.items():
        if not _is_everyday(name):
            return False
        kind = type(each)
        if kind is str:
            if not is_surely_clean(each):
                return False
        elif kind is not int and kind is not bool and kind is not float and each is not None:
            return False
    return True


def redact_value(value: object) -> object:
    """A parsed JSON value with secrets replaced: values of secret names whole, the rest by their shape."""
    return redact_secrets(value)


@lru_cache(maxsize=4096)
def _is_everyday(name: str) -> bool:
    return is_surely_clean(name) and sensitivity(name) is Sensitivity.HARMLESS
