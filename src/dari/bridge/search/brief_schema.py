"""Shorten input schemas of matches so that a search result stays cheap to read.

A schema that fits is given as it is, without what no caller needs. One that does not loses long descriptions first,
then every description below its own arguments; one that is still too long is left to `describe_tool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

if TYPE_CHECKING:
    from dari.bridge.search.index import ToolIndex, ToolMatch

JsonObject = dict[str, Any]

MAX_SCHEMAS = 3
MAX_SCHEMA_BYTES = 4000
"""About a thousand tokens; nine of ten public tools need less than half of it."""
MAX_DESCRIPTION_CHARS = 160
_NOISE = frozenset(("$schema", "title", "examples", "$id", "$comment"))
_KEYWORDS_OF_NAMES = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Below these the keys are names, not keywords."""
MAX_DEPTH = 24


def attach_schemas(found: Sequence[ToolMatch], index: ToolIndex) -> list[ToolMatch]:
    """The same tools; the first three carry their inputSchema where it is short enough."""
    first = [structs.replace(one, input_schema=_given(index, one.name)) for one in found[:MAX_SCHEMAS]]
    return [*first, *found[MAX_SCHEMAS:]]


def _given(index: ToolIndex, name: str) -> JsonObject | msgspec.UnsetType:
    schema = brief_schema(index.describe(name).get("inputSchema"))
    return msgspec.UNSET if schema is None else schema


def brief_schema(schema: object) -> JsonObject | None:
    """The schema in at most MAX_SCHEMA_BYTES, or None."""
    if not isinstance(schema, dict) or len(msgspec.json.encode(schema)) > 16 * MAX_SCHEMA_BYTES:
        return None  # no shortening brings that far down, and it is not walked for nothing
    for described_levels, description_chars in ((MAX_DEPTH, None), (MAX_DEPTH, MAX_DESCRIPTION_CHARS), (2, 80)):
        short = _shortened(schema, described_levels, description_chars, 0)
        if isinstance(short, dict) and len(msgspec.json.encode(short)) <= MAX_SCHEMA_BYTES:
            return short
    return None


def _shortened(value: object, described_levels: int, description_chars: int | None, depth: int) -> object:
    if depth > MAX_DEPTH:
        return {}
    if isinstance(value, list):
        return [_shortened(one, described_levels, description_chars, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    kept: JsonObject = {}
    for key, inner in value.items():
        if key in _NOISE and isinstance(inner, str | list):
            continue
        if key == "description" and isinstance(inner, str):
            if depth <= described_levels:
                kept[key] = _cut(inner, description_chars)
        elif key in _KEYWORDS_OF_NAMES and isinstance(inner, dict):
            kept[key] = {
                name: _shortened(one, described_levels, description_chars, depth + 2) for name, one in inner.items()
            }
        elif key in ("enum", "const", "default", "required"):
            kept[key] = inner
        else:
            kept[key] = _shortened(inner, described_levels, description_chars, depth + 1)
    return kept


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else text[: most - 1] + "…"
