"""How tools meet a model: schemas no larger than needed, and null for an argument that is left out."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

import msgspec
from msgspec.structs import replace

from dari.core.context import Context
from dari.core.schema import Schema
from dari.core.tool import Run, Tool
from dari.errors import InvalidInput
from dari.rpc.codec import UNREADABLE

_NO_VALUE = re.compile(r"argument '(\w+)' is .*: invalid enum value")


def simplify_tool(tool: Tool) -> Tool:
    """The tool with schemas that say nothing twice: a title repeats the name, null counts as absent."""
    schema = _untitled(tool.input_schema)
    properties = {name: _plain(shown) for name, shown in schema["properties"].items()}
    optional = properties.keys() - schema.get("required", ())
    return replace(
        tool,
        input_schema={**schema, "properties": properties},
        output_schema=tool.output_schema and _untitled(tool.output_schema),
        run=_lenient(tool.run, optional, properties),
    )


def _untitled(schema: Schema) -> Schema:
    shown: Schema = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            shown[name] = {key: _untitled(part) for key, part in value.items()}
        elif isinstance(value, dict) and name != "default":
            shown[name] = _untitled(value)
        elif name == "anyOf":
            shown[name] = [_untitled(part) for part in value]
        elif name == "description":
            shown[name] = " ".join(value.split())
        elif name != "title":
            shown[name] = value
    if all(isinstance(value, str) for value in shown.get("enum", (0,))):
        shown = {"type": "string", **shown}  # some models' schemas know no enum without a type
    return shown


def _plain(schema: Schema) -> Schema:
    """`X | None = None` as X."""
    branches = schema.get("anyOf", [])
    if {"type": "null"} not in branches or schema.get("default", 0) is not None:
        return schema
    others = [branch for branch in branches if branch != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**others[0], **rest} if len(others) == 1 else {"anyOf": others, **rest}


def _lenient(run: Run, optional: Set[str], properties: Schema) -> Run:
    def lenient(arguments: bytes | msgspec.Raw, context: Context, /) -> Any:
        try:
            return run(arguments, context)
        except InvalidInput as error:
            kept = _without_nulls(arguments, optional)
            if kept is None:
                raise _with_values(error, properties) from None
        return run(kept, context)

    return lenient


def _with_values(error: InvalidInput, properties: Schema) -> InvalidInput:
    """The same error; for a word that is none of those that an argument may be, the hint names them."""
    found = _NO_VALUE.match(error.message)
    values = properties.get(found[1], {}).get("enum") if found else None
    return InvalidInput(error.message, f"one of {', '.join(map(str, values))}") if values else error


def _without_nulls(arguments: bytes | msgspec.Raw, optional: Set[str]) -> bytes | None:
    """What is left when optional arguments that are null are left out; None when there are none."""
    try:
        given = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return None
    kept = {name: value for name, value in given.items() if name not in optional or bytes(value) != b"null"}
    return msgspec.json.encode(kept) if len(kept) < len(given) else None
