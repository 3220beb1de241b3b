"""JSON Schema 2020-12 from msgspec types, shaped as MCP clients like it: one object, titled, closed."""

from __future__ import annotations

from typing import Any

import msgspec

Schema = dict[str, Any]
_REF = "#/$defs/{name}"


def object_schema(struct: type[msgspec.Struct]) -> Schema:
    """The schema of a Struct with its own members at the root; shared types stand under `$defs`."""
    (root,), defs = msgspec.json.schema_components([struct], ref_template=_REF)
    name = root["$ref"].rpartition("/")[2]
    schema: Schema = {"type": "object", **{k: v for k, v in defs.pop(name).items() if k != "title"}}
    schema.setdefault("properties", {})
    if not schema.get("required"):
        schema.pop("required", None)
    _add_titles(schema)
    if _refers_to(schema, name) or any(_refers_to(d, name) for d in defs.values()):
        defs[name] = dict(schema)
    if defs:
        for part in defs.values():
            _add_titles(part)
        schema["$defs"] = defs
    _open_tuples(schema)
    return schema


def _add_titles(schema: Schema) -> None:
    for name, prop in schema.get("properties", {}).items():
        if "title" not in prop:
            schema["properties"][name] = {"title": title_of(name), **prop}


def _open_tuples(node: Any) -> None:
    """Take `items: false` out, which some clients do not read: `maxItems` says the same."""
    if isinstance(node, dict):
        if node.get("items") is False and "maxItems" in node:
            del node["items"]
        for value in node.values():
            _open_tuples(value)
    elif isinstance(node, list):
        for value in node:
            _open_tuples(value)


def _refers_to(node: Any, name: str) -> bool:
    if isinstance(node, dict):
        return node.get("$ref") == _REF.format(name=name) or any(_refers_to(v, name) for v in node.values())
    return isinstance(node, list) and any(_refers_to(v, name) for v in node)


def title_of(name: str) -> str:
    """`rules_add_allow` → `Rules add allow`, `mimeType` → `Mime type`."""
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in name).replace("_", " ").strip()
    return spaced[:1].upper() + spaced[1:]
