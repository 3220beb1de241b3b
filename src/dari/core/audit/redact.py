"""JSON without its secrets, for the audit log and for the questions that people are shown."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dari.core.audit.record import PendingRecord
from dari.text.redact import is_surely_clean, redact_secrets
from dari.text.redact.names import Sensitivity, sensitivity

MAX_ARGUMENT_BYTES = 4096
MAX_TEXT_CHARS = 1000
_LF, _CR = 10, 13
NOT_SHOWN = "<not shown: it could not be redacted>"
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def redact_json(data: bytes) -> bytes:
    """The JSON with secrets replaced; the very bytes when there are none. Raises for text that is not JSON."""
    value = _decode(data)
    if _is_harmless(value):
        return data
    redacted = redact_secrets(value)
    return data if redacted is value else _encode(redacted)


def redact_value(value: object) -> object:
    """A parsed JSON value with secrets replaced: values of secret names whole, the rest by their shape."""
    return redact_secrets(value)


def redact_record(record: PendingRecord) -> PendingRecord:
    """The record as it may be written: without secrets, on one line, long texts cut. The same one if nothing changes.

    No secret may slip through because redacting it failed, and no record may be lost for that.
    """
    arguments, detail = record.arguments, record.detail
    shown: Raw | msgspec.UnsetType = UNSET
    if arguments is not UNSET:
        given = bytes(arguments)
        fitting = _fit_line(given)
        shown = arguments if fitting is given else Raw(fitting)
    # What the log tells of itself is ours. Errors, details and decisions come from servers and people.
    is_foreign = record.kind in ("call", "decision")
    if shown is arguments and not record.error and not (detail and is_foreign):
        return record
    return msgspec.structs.replace(
        record,
        arguments=shown,
        error=_redact_text(record.error[:MAX_TEXT_CHARS]) if record.error else "",
        detail=_redact_detail(detail) if detail and is_foreign else detail,
    )


def _fit_line(arguments: bytes) -> bytes:
    """Redacted arguments without a line end; cut when they are long."""
    try:
        shown = redact_json(arguments)
        if _LF in shown or _CR in shown:  # as numbers: ten times as fast
            shown = msgspec.json.format(shown, indent=-1)
    except Exception:
        return _encode(NOT_SHOWN)
    if len(shown) <= MAX_ARGUMENT_BYTES:
        return shown
    text = shown[: MAX_TEXT_CHARS * 4].decode(errors="replace")[:MAX_TEXT_CHARS]
    return _encode(f"{text}… ({len(arguments)} bytes)")


def _redact_text(text: str) -> str:
    try:
        return str(_decode(redact_json(_encode(text))))
    except UnicodeEncodeError:  # a lone surrogate, which neither JSON nor a file can hold
        return _redact_text(text.encode(errors="backslashreplace").decode())
    except Exception:
        return NOT_SHOWN


def _redact_detail(detail: dict[str, Any]) -> dict[str, Any]:
    try:
        redacted: dict[str, Any] = _decode(redact_json(_encode(detail)))
        return redacted
    except Exception:
        return {}


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


@lru_cache(maxsize=4096)
def _is_everyday(name: str) -> bool:
    return is_surely_clean(name) and sensitivity(name) is Sensitivity.HARMLESS
