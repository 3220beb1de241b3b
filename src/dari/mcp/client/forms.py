"""Forms of elicitation: a field that was left out takes the default of its schema (SEP-1034)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fill_in(schema: Mapping[str, Any], content: Mapping[str, Any] | None) -> dict[str, Any]:
    """The content with defaults for what it lacks."""
    filled = dict(content or {})
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, part in properties.items():
            if name not in filled and isinstance(part, dict) and part.get("default") is not None:
                filled[name] = part["default"]
    return filled
