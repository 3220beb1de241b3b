"""The JSON Schema of `mcp.json`, generated from the types that read it."""

from __future__ import annotations

import json

import msgspec

from dari.bridge.config.jsonc import JsonValue
from dari.bridge.config.loader import FOREIGN_FIELDS
from dari.bridge.config.schema import Document

SCHEMA_ID = "urn:dari:schema:mcp.json"
Schema = dict[str, JsonValue]
_REF = "#/$defs/{name}"


def profile_schema() -> Schema:
    """JSON Schema 2020-12 of one file. Servers in a list are closed; in an object they may have foreign fields."""
    (_,), defs = msgspec.json.schema_components([Document], ref_template=_REF)
    root = defs.pop("Document")
    properties = root["properties"]
    properties["$schema"] = {"type": "string"}
    del properties["schema"]
    open_entry = {**defs["ServerEntry"], "additionalProperties": True}
    open_entry["properties"] = {**open_entry["properties"], **dict.fromkeys(FOREIGN_FIELDS, True)}
    defs["NamedServer"] = open_entry
    defs["ServerEntry"] = _closed(defs["ServerEntry"])
    named = {"type": "object", "additionalProperties": {"$ref": _REF.format(name="NamedServer")}}
    listed = {"type": "array", "items": {"$ref": _REF.format(name="ServerEntry")}}
    properties["servers"] = {"anyOf": [listed, named], "description": "CrewX writes a list, VS Code an object."}
    properties["mcpServers"] = {**named, "description": "As Claude, Cursor and Windsurf write it."}
    defs["EndpointsEntry"]["properties"]["endpoints"] = {
        "type": "array",
        "items": {"$ref": _REF.format(name="NamedServer")},
    }
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Profiles of MCP servers (mcp.json)",
        "description": root["description"],
        "type": "object",
        "properties": properties,
        "$defs": defs,
    }
    return schema


def schema_text() -> str:
    """As it is published."""
    return json.dumps(profile_schema(), indent=2, ensure_ascii=False) + "\n"


def _closed(entry: Schema) -> Schema:
    """An entry of our own dialect: it has a name, and no field we do not know, but for `x-…`."""
    return {**entry, "required": ["id"], "patternProperties": {"^(x-|_|\\$|//)": True}, "additionalProperties": False}
