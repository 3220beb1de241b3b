"""The gate: a whole result as an agent may read it, whatever type it is made of.

Values of secret names go whole (dictionaries, fields, `name` beside `value`, lists of pairs, options of a command),
texts and bytes are searched. What a `Redactor` gave out a moment ago is known, and not searched again.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dari.errors import DariError
from dari.text.redact.names import Sensitivity, is_secret, is_secret_name, sensitivity
from dari.text.redact.patterns import MARK, is_card_number
from dari.text.redact.text import MAX_CHARS, is_known_clean, is_surely_clean, redact_text

_MAX_DEPTH = 64
_PUBLIC_FIELDS = frozenset({"session_id", "progress_token", "next_cursor"})
"""Fields of our own results that an agent hands back to us; no stranger's secret is ever in them."""
_NAME_KEYS = ("name", "key", "field", "header", "id")
_VALUE_KEYS = ("value", "val", "content", "text")
_SCHEMA_TYPES = ("string", "object", "integer", "number", "array", "boolean", "null")
_SCHEMA_WORDS = frozenset(
    {
        *("$ref", "anyOf", "oneOf", "allOf", "not", "type", "title", "description", "format", "pattern", "enum"),
        *("const", "default", "example", "examples", "minLength", "maxLength", "items", "properties", "required"),
        *("nullable", "deprecated", "readOnly", "writeOnly", "additionalProperties", "minimum", "maximum"),
    }
)
_SCHEMA_VALUES = frozenset({"default", "const", "example", "examples"})
_CUT_CHARS = 4096
_MAX_REMEMBERED_CHARS = 4096


def redact_secrets(value: Any) -> Any:
    """The value with its secrets replaced by `<redacted>`; the very object when there are none in it."""
    return _shown(value, 0)


def redact_error(error: DariError) -> DariError:
    """The error with nothing secret in its message and hint. It is changed in place, so that its type stays."""
    error.message = redact_string(error.message)
    error.hint = redact_string(error.hint)
    error.args = (error.message, *error.args[1:])
    return error


def redact_string(text: str) -> str:
    """Any length: what is longer than one search takes goes in pieces, cut between words."""
    if is_surely_clean(text) or is_known_clean(text):
        return text
    if len(text) <= _MAX_REMEMBERED_CHARS:
        shown = _remembered(text)
        return text if shown == text else shown
    if len(text) <= MAX_CHARS:
        redacted = redact_text(text)
        return redacted.text if redacted.found else text
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(start + MAX_CHARS, len(text))
        if end < len(text):
            end = max(text.rfind("\n", end - _CUT_CHARS, end), text.rfind(" ", end - _CUT_CHARS, end)) + 1 or end
        pieces.append(redact_text(text[start:end]).text)
        start = end
    return "".join(pieces)


@lru_cache(maxsize=4096)
def _shown_name(name: str) -> str:
    """Names repeat from result to result, and are hardly ever secrets themselves."""
    return redact_string(name)


@lru_cache(maxsize=1024)
def _remembered(text: str) -> str:
    """Remembered: watching traffic or panes asks for the same short texts again and again."""
    shown = redact_text(text)
    return shown.text if shown.found else text


def _shown(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return redact_string(value)
    if value is None or kind is bool or kind is int or kind is float:
        return value
    if depth >= _MAX_DEPTH:
        return MARK  # too deep to look through, so not shown
    if isinstance(value, dict):
        return _shown_dict(value, depth)
    if isinstance(value, (list, tuple)):
        return _shown_items(value, depth)
    if isinstance(value, Raw):
        decoded = msgspec.json.decode(value) if bytes(value) else None
        shown = _shown(decoded, depth + 1)
        return value if shown is decoded else Raw(msgspec.json.encode(shown))
    if isinstance(value, Struct):
        return _shown_struct(value, depth)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _shown_bytes(bytes(value))
    return value


def _shown_struct(value: Struct, depth: int) -> Struct:
    """The same type, so that its way of being encoded stays."""
    before = {name: getattr(value, name) for name in value.__struct_fields__}
    after = _members(before, depth, frozenset(_PUBLIC_FIELDS))
    changed = {name: each for name, each in after.items() if each is not before[name]}
    return msgspec.structs.replace(value, **changed) if changed else value


def _shown_dict(value: dict[Any, Any], depth: int) -> dict[Any, Any]:
    after = _members(value, depth, frozenset())
    names = {key: _shown_name(key) if isinstance(key, str) else key for key in after}
    is_same = all(each is value[key] and names[key] == key for key, each in after.items())
    return value if is_same else {names[key]: each for key, each in after.items()}


def _members(members: dict[Any, Any], depth: int, public: frozenset[str]) -> dict[Any, Any]:
    after: dict[Any, Any] = {}
    named = _named_secret(members)
    for key, value in members.items():
        name = key if isinstance(key, str) else ""
        if name not in public and (_is_hidden(name, value) or (named and name in _VALUE_KEYS)):
            after[key] = MARK
        elif name.endswith("_b64") and isinstance(value, str):
            after[key] = _shown_base64(value)
        elif type(value) is int and not public:
            after[key] = _shown_number(value)
        elif isinstance(value, dict) and sensitivity(name) >= Sensitivity.UNLESS_COUNT and _is_schema(value):
            after[key] = _shown(_without_values(value), depth + 1)
        else:
            after[key] = _shown(value, depth + 1)
    return after


def _shown_items(value: list[Any] | tuple[Any, ...], depth: int) -> Any:
    are_pairs = bool(value) and all(_is_pair(each) for each in value)
    after = []
    hides_next = False
    for each in value:
        if are_pairs and _is_hidden(each[0], each[1]):
            after.append(type(each)((each[0], MARK)))
        elif hides_next and isinstance(each, str) and not each.startswith("-"):
            after.append(MARK)
        else:
            after.append(_shown(each, depth + 1))
        hides_next = isinstance(each, str) and each.startswith("--") and is_secret_name(each)
    if all(new is old for new, old in zip(after, value, strict=True)):
        return value
    return type(value)(after) if type(value) in (list, tuple) else after


def _is_pair(value: Any) -> bool:
    return type(value) in (list, tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _is_hidden(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return is_secret(name, value)
    if value is None or isinstance(value, bool) or (isinstance(value, (dict, list, tuple, bytes)) and not value):
        return False
    level = sensitivity(name)
    if isinstance(value, dict) and _is_schema(value):
        return False
    if isinstance(value, (int, float)):
        return level is Sensitivity.SECRET
    if level is Sensitivity.UNLESS_COUNT and isinstance(value, (dict, list, tuple)):
        return _has_text(value)
    return level >= Sensitivity.UNLESS_COUNT


def _is_schema(value: dict[Any, Any]) -> bool:
    """The description of a parameter that will hold a secret is none."""
    kind = value.get("type")
    return kind in _SCHEMA_TYPES or isinstance(kind, list) or (bool(value) and value.keys() <= _SCHEMA_WORDS)


def _without_values(schema: dict[Any, Any]) -> dict[Any, Any]:
    if _SCHEMA_VALUES.isdisjoint(schema):
        return schema
    return {word: MARK if word in _SCHEMA_VALUES else each for word, each in schema.items()}


def _has_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_text(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return any(_has_text(each) for each in value)
    return isinstance(value, (str, bytes, Struct))


def _named_secret(members: dict[Any, Any]) -> bool:
    """`{"name": "password", "value": …}`: does one member name what another holds?"""
    value = next((members[key] for key in _VALUE_KEYS if key in members), None)
    if value is None:
        return False
    return any(_is_hidden(label, value) for key in _NAME_KEYS if isinstance(label := members.get(key), str))


def _shown_number(value: int) -> int | str:
    return MARK if 10**12 < value < 10**19 and is_card_number(str(value)) else value


def _shown_bytes(value: bytes) -> bytes:
    text = value.decode(errors="replace")
    shown = redact_string(text)
    return value if shown is text or shown == text else shown.encode()


def _shown_base64(value: str) -> str:
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return redact_string(value)
    shown = _shown_bytes(raw)
    return value if shown is raw else base64.b64encode(shown).decode()
