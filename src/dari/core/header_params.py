"""Arguments that a schema mirrors into HTTP headers with `x-mcp-header`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Path = tuple[str, ...]
KEY = "x-mcp-header"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")
_ONE = {"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"}
_ONE |= {"not", "if", "then", "else", "contentSchema"}
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("patternProperties", "dependentSchemas", "$defs", "definitions")


def find_header_params(schema: Any) -> dict[str, Path]:
    """Header suffix (as written) → path of the argument. Raises ValueError when an annotation is not allowed.

    Allowed is a unique header token on a string, integer or boolean that is reached through `properties` alone.
    """
    found: dict[str, Path] = {}
    for path, part in _positions(schema):
        if KEY not in part:
            continue
        token = part[KEY]
        if not path:
            raise ValueError(f"{KEY} must be on an argument")
        where = ".".join(path)
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise ValueError(f"{KEY} of '{where}' is not a header token")
        if part.get("type") not in _TYPES:
            raise ValueError(f"{KEY} of '{where}' is on type {part.get('type')!r}; allowed are {', '.join(_TYPES)}")
        if token.lower() in (known.lower() for known in found):
            raise ValueError(f"{KEY} '{token}' is used twice")
        found[token] = path
    return found


def value_at(arguments: Any, path: Path) -> Any:
    """The argument at a path; None where it is absent."""
    for step in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(step)
    return arguments


def _positions(root: Any) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """Every schema position with its path; None below anything but `properties`. `$ref` is not followed."""
    stack: list[tuple[Path | None, Any]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        for key, value in node.items():
            if key == "properties" and isinstance(value, dict):
                stack += [(None if path is None else (*path, name), part) for name, part in value.items()]
            elif key in _ONE:
                stack.append((None, value))
            elif key in _MANY and isinstance(value, list):
                stack += [(None, part) for part in value]
            elif key in _NAMED and isinstance(value, dict):
                stack += [(None, part) for part in value.values()]
