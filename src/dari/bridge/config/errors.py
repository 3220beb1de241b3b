"""Errors of configuration files: each names the file, the line and the field, never a value that could be secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from dari.bridge.config.jsonc import JsonPath, JsonStep, Node, format_path
from dari.errors import InvalidInput

if TYPE_CHECKING:
    from msgspec import inspect

_AT = re.compile(r" - at `(?:key in )?(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_VALUE = re.compile(r"(?<=Invalid enum value) .*$", re.DOTALL)


class FieldProblem(Exception):
    """An invalid field, by its path inside one server; the loader adds file and line."""

    def __init__(self, path: JsonPath, fact: str, hint: str = "") -> None:
        super().__init__(fact)
        self.path = path
        self.fact = fact
        self.hint = hint


def config_error(file: str, root: Node, path: JsonPath, fact: str, hint: str) -> InvalidInput:
    """`mcp.json:12: servers[0].timeoutMs: expected int, got str`"""
    return InvalidInput(f"{file}:{root.line_of(path)}: {format_path(path)}: {fact}", hint)


def to_field_problem(error: msgspec.ValidationError, struct: type[msgspec.Struct]) -> FieldProblem:
    """The problem behind msgspec's sentence. Values are left out: a key can stand in any field by mistake."""
    text = str(error)
    place = _AT.search(text)
    path = _steps(place["path"]) if place else ()
    fact = text[: place.start()] if place else text
    if unknown := _UNKNOWN.search(text):
        known = _names_in(_type_at(struct, path))
        return FieldProblem((*path, unknown["name"]), "unknown field", suggest(unknown["name"], known))
    if missing := _MISSING.search(text):
        return FieldProblem(path, f"field '{missing['name']}' is missing", f"add '{missing['name']}'")
    hint = ""
    if values := _choices(_type_at(struct, path)):
        hint = f"use one of: {', '.join(values)}"
    fact = _VALUE.sub("", fact).replace("`", "")
    return FieldProblem(path, fact[:1].lower() + fact[1:], hint or "see docs/guide/profiles.md")


def suggest(name: str, known: tuple[str, ...]) -> str:
    close = nearest_name(name, known)
    return f"did you mean '{close}'?" if close else f"known here: {', '.join(known)}"


def nearest_name(name: str, known: tuple[str, ...]) -> str | None:
    """The known name that was probably meant."""
    plain = name.lower().replace("_", "").replace("-", "")
    slips = 1 if len(plain) < 8 else 2
    by_distance = [(_edit_distance(plain, one.lower().replace("_", "")), one) for one in known]
    distance, best = min(by_distance, default=(99, ""))
    return best if distance <= slips else None


def _edit_distance(first: str, second: str) -> int:
    """Slips of the hand between two words: a letter more, less, wrong, or two that changed places."""
    if abs(len(first) - len(second)) > 2:
        return 99
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, above, row = row, before, [i]
        for j, b in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


def field_names(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """The names a part of the file may have, as they are written."""
    return struct.__struct_encode_fields__


def _steps(path: str) -> JsonPath:
    steps: list[JsonStep] = []
    for name, index in _STEP.findall(path):
        if name:
            steps.append(name)
        elif index != "...":
            steps.append(int(index))
    return tuple(steps)


def _names_in(kind: inspect.Type | None) -> tuple[str, ...]:
    from msgspec import inspect

    for one in _alternatives(kind):
        if isinstance(one, inspect.StructType):
            return field_names(one.cls)
    return ()


def _type_at(struct: type[msgspec.Struct], path: JsonPath) -> inspect.Type | None:
    from msgspec import inspect

    kind: inspect.Type | None = inspect.type_info(struct)
    for step in path:
        below: inspect.Type | None = None
        for one in _alternatives(kind):
            if isinstance(one, inspect.StructType):
                below = next((f.type for f in one.fields if f.encode_name == step), below)
            elif isinstance(one, (inspect.ListType, inspect.CollectionType)):
                below = one.item_type
        kind = below
    return kind


def _alternatives(kind: inspect.Type | None) -> tuple[inspect.Type, ...]:
    from msgspec import inspect

    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    if isinstance(kind, inspect.UnionType):
        return tuple(one for part in kind.types for one in _alternatives(part))
    return (kind,) if kind is not None else ()


def _choices(kind: inspect.Type | None) -> tuple[str, ...]:
    from msgspec import inspect

    for one in _alternatives(kind):
        if isinstance(one, inspect.LiteralType):
            return tuple(str(value) for value in one.values)
    return ()
