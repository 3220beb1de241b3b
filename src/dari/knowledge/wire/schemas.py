"""The JSON Schemas of the wire objects: made from the structs, shipped as files beside this module.

`python -m dari.knowledge.wire.schemas` writes the files; a test fails when they differ from the structs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from dari.core.schema import Schema, object_schema
from dari.errors import NotFound

FOLDER = Path(__file__).parent / "schemas"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def wire_types() -> dict[str, type[Struct]]:
    """Every wire object by its name, such as `search_hit.v1`."""
    from dari.knowledge.eval import compare, run, tune
    from dari.knowledge.wire import objects, reports

    modules = (objects, reports, run, compare, tune)
    found = [kind for module in modules for kind in vars(module).values() if _is_wire(kind)]
    return {name_of(kind): kind for kind in sorted(set(found), key=name_of)}


def name_of(kind: type[Struct]) -> str:
    """The name in `schema_version`."""
    return str(next(field.default for field in fields(kind) if field.name == "schema_version"))


def make_schema(kind: type[Struct]) -> Schema:
    """The schema of one struct: what is always written is required, `schema_version` is a constant."""
    schema = object_schema(kind)
    parts = {kind.__name__: schema, **schema.get("$defs", {})}
    for part in parts.values():
        _require_written(part)
    if "BulkSearchItemV1" in parts:
        parts["BulkSearchItemV1"]["oneOf"] = [{"required": ["response"]}, {"required": ["error"]}]
    return {"$schema": _DIALECT, "title": name_of(kind), **schema}


def names() -> tuple[str, ...]:
    """The names of the shipped schemas."""
    return tuple(sorted(path.name.removesuffix(".schema.json") for path in FOLDER.glob("*.schema.json")))


def schema_text(name: str) -> str:
    """The shipped file of one wire object."""
    name = name.removesuffix(".schema.json")
    known = names()
    chosen = name if name in known else f"{name}.v1"
    if chosen not in known:
        raise NotFound(f"unknown wire object {name[:60]!r}", f"known: {', '.join(known)}")
    return (FOLDER / f"{chosen}.schema.json").read_text("utf-8")


def encode_schema(schema: Schema) -> str:
    import json

    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_all() -> None:
    """Write every file, and remove those that no struct has any more."""
    FOLDER.mkdir(exist_ok=True)
    made = {f"{name}.schema.json": encode_schema(make_schema(kind)) for name, kind in wire_types().items()}
    for path in FOLDER.glob("*.json"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, "utf-8")


def _require_written(part: Schema) -> None:
    """A member with a default is written, too: only unset ones are left out. Titles repeat the names."""
    properties = part.get("properties", {})
    written = [name for name in properties if name in part.get("required", ()) or "default" in properties[name]]
    for name, shown in properties.items():
        kept = {key: value for key, value in shown.items() if key not in ("title", "default")}
        properties[name] = {"const": shown["default"]} if name == "schema_version" else kept
    part.pop("title", None)
    if written:
        part["required"] = written


def _is_wire(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct) and "schema_version" in kind.__struct_fields__


if __name__ == "__main__":
    write_all()
