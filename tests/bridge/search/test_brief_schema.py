"""Schemas beside found tools: whole where they are short, shorter where they are not, absent where that does not do."""

from __future__ import annotations

from typing import Any

import msgspec

from dari.bridge.gateway.search_mode import MAX_SCHEMA_BYTES, attach_schemas, brief_schema
from dari.bridge.search.index import ToolIndex


def schema_of(count: int, described: str = "") -> dict[str, Any]:
    properties = {f"field_{at}": {"type": "string", "description": described} for at in range(count)}
    return {"type": "object", "properties": properties, "required": ["field_0"]}


def test_a_short_schema_is_given_as_it_is_without_what_no_caller_needs() -> None:
    given = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Arguments",
        "type": "object",
        "properties": {"title": {"type": "string", "title": "Title", "enum": ["title", "examples"]}},
        "required": ["title"],
    }
    assert brief_schema(given) == {
        "type": "object",
        "properties": {"title": {"type": "string", "enum": ["title", "examples"]}},
        "required": ["title"],
    }


def test_long_descriptions_are_cut_before_arguments_are_left_out() -> None:
    short = brief_schema(schema_of(20, "word " * 100))
    assert short is not None and len(msgspec.json.encode(short)) <= MAX_SCHEMA_BYTES
    assert len(short["properties"]) == 20 and short["required"] == ["field_0"]
    assert short["properties"]["field_3"]["description"].startswith("word word")


def test_a_schema_that_no_cut_makes_short_is_left_to_describe_tool() -> None:
    assert brief_schema(schema_of(400)) is None
    assert brief_schema(schema_of(40_000)) is None
    assert brief_schema(None) is None


def test_only_the_first_three_carry_a_schema() -> None:
    index = ToolIndex()
    index.put(
        "s", [{"name": f"s__send_{at}", "description": "Send it.", "inputSchema": schema_of(1)} for at in range(5)]
    )
    found = attach_schemas(index.find("send"), index)
    assert [one.input_schema is msgspec.UNSET for one in found] == [False, False, False, True, True]
