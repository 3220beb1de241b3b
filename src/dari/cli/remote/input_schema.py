"""What a tool's input schema says about its arguments, as far as a command line needs it."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

Schema = dict[str, Any]

_MAX_DEPTH = 8
"""Schemas may refer to themselves."""
_BRANCHES = ("allOf", "anyOf", "oneOf")


class SchemaArgument(Struct, frozen=True):
    """One property of a schema, with references followed."""

    name: str
    schema: Schema
    is_required: bool = False

    @property
    def description(self) -> str:
        said = self.schema.get("description")
        return said if isinstance(said, str) else ""


class ObjectSchema:
    """An object schema: its properties in order, and whether others are welcome."""

    def __init__(self, schema: Any, root: Schema | None = None) -> None:
        own = schema if isinstance(schema, dict) else {}
        self.root = own if root is None else root
        self.schema = follow(own, self.root)
        required: set[str] = set()
        self.properties: dict[str, Schema] = {}
        self._gather(self.schema, required, 0)
        self.arguments = tuple(SchemaArgument(name, each, name in required) for name, each in self.properties.items())
        extra = self.schema.get("additionalProperties")
        # A schema without any property says nothing; one that allows others says so.
        self.takes_any = extra is True or isinstance(extra, dict) or (not self.properties and extra is not False)
        if "properties" in self.schema and not self.properties and extra is None:
            self.takes_any = False

    def _gather(self, schema: Schema, required: set[str], depth: int, is_sure: bool = True) -> None:
        """Properties of all branches count as known; only what every branch demands is required."""
        properties = schema.get("properties")
        for name, each in (properties if isinstance(properties, dict) else {}).items():
            self.properties.setdefault(str(name), follow(each, self.root))
        demanded = schema.get("required")
        if is_sure and isinstance(demanded, list):
            required.update(name for name in demanded if isinstance(name, str))
        if depth >= _MAX_DEPTH:
            return
        for word in _BRANCHES:
            branches = schema.get(word)
            for branch in branches if isinstance(branches, list) else ():
                self._gather(follow(branch, self.root), required, depth + 1, is_sure and word == "allOf")


def follow(schema: Any, root: Schema) -> Schema:
    """The schema behind a `$ref` inside the same document; anything else counts as an empty schema."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        found: Any = root
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, dict) else None
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**found, **rest} if isinstance(found, dict) else rest
    return {}


def types_of(schema: Schema, root: Schema, depth: int = 0) -> set[str]:
    """The JSON types a value may have; empty where the schema does not say."""
    schema = follow(schema, root)
    said = schema.get("type")
    if isinstance(said, str):
        return {said}
    if isinstance(said, list):
        return {each for each in said if isinstance(each, str)}
    if "const" in schema:
        return {_type_name(schema["const"])}
    if isinstance(schema.get("enum"), list):
        return {_type_name(each) for each in schema["enum"]}
    found: set[str] = set()
    for word in _BRANCHES:
        for branch in _list(schema, word) if depth < _MAX_DEPTH else ():
            found |= types_of(branch, root, depth + 1)
    if not found and isinstance(schema.get("properties"), dict):
        return {"object"}
    if not found and "items" in schema:
        return {"array"}
    return found


def choices_of(schema: Schema, root: Schema, depth: int = 0) -> list[Any]:
    """The values to choose from; empty where any value of the type will do."""
    schema = follow(schema, root)
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    found: list[Any] = []
    for word in ("anyOf", "oneOf"):
        branches = _list(schema, word)
        inner = [choices_of(branch, root, depth + 1) for branch in branches] if depth < _MAX_DEPTH else []
        # One branch without a choice of values lets any value through; null beside a choice is not listed.
        if branches and all(inner[at] or types_of(branch, root) == {"null"} for at, branch in enumerate(branches)):
            found += [value for values in inner for value in values]
    return found


def items_of(schema: Schema, root: Schema, depth: int = 0) -> Schema:
    """The schema of an array's members."""
    schema = follow(schema, root)
    if isinstance(schema.get("items"), dict):
        return follow(schema["items"], root)
    for word in _BRANCHES:
        for branch in _list(schema, word) if depth < _MAX_DEPTH else ():
            if items := items_of(branch, root, depth + 1):
                return items
    return {}


def type_text(schema: Schema, root: Schema) -> str:
    """The type in a few words: `string`, `integer or null`, `one of: a, b`, `list of string`."""
    if choices := choices_of(schema, root):
        return "one of: " + ", ".join(_value_text(each) for each in choices[:12]) + (", …" if choices[12:] else "")
    names = sorted(types_of(schema, root), key=lambda name: (name == "null", name))
    type_names = []
    for name in names:
        items = items_of(schema, root) if name == "array" else {}
        type_names.append(f"list of {type_text(items, root)}" if items else "list" if name == "array" else name)
    return " or ".join(type_names) or "any"


def example_of(schema: Schema, root: Schema, name: str = "value", depth: int = 0) -> Any:
    """A value that fits, as a placeholder: the schema's own example or default where it has one."""
    schema = follow(schema, root)
    if isinstance(schema.get("examples"), list) and schema["examples"]:
        return schema["examples"][0]
    if "default" in schema and schema["default"] is not None:
        return schema["default"]
    if choices := choices_of(schema, root):
        return choices[0]
    types = types_of(schema, root)
    if "string" in types or not types:
        return f"<{name}>"
    if types & {"integer", "number"}:
        least = schema.get("minimum")
        return least if isinstance(least, int | float) else 1
    if "boolean" in types:
        return True
    if "array" in types:
        return [example_of(items_of(schema, root), root, name, depth + 1)] if depth < 3 else []
    if "object" in types and depth < 3:
        inner = ObjectSchema(schema, root)
        return {
            each.name: example_of(each.schema, root, each.name, depth + 1)
            for each in inner.arguments
            if each.is_required
        }
    return {} if "object" in types else None


def _list(schema: Schema, word: str) -> list[Any]:
    found = schema.get(word)
    return found if isinstance(found, list) else []


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    names = ((int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next(name for kind, name in names if isinstance(value, kind))
