"""The signature is the schema: closed, titled, with defaults, bounds and descriptions."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from msgspec import Meta

from dari.core.schema import object_schema, title_of
from dari.core.tool import tool, tools_of, typed_tool
from tests.support.typed_tools import Forest, Kit, Tree

TOOLS = {tool.name: tool for tool in tools_of(Kit())}


def test_every_argument_has_a_title_a_type_and_its_default() -> None:
    assert TOOLS["kit_plain"].input_schema == {
        "type": "object",
        "properties": {
            "text": {"title": "Text", "type": "string"},
            "how_many": {"title": "How many", "type": "integer", "default": 3},
            "ratio": {"title": "Ratio", "type": "number", "default": 0.5},
            "loud": {"title": "Loud", "type": "boolean", "default": False},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("name", TOOLS)
def test_every_input_schema_is_one_closed_object(name: str) -> None:
    schema = TOOLS[name].input_schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert isinstance(schema["properties"], dict)
    assert schema.get("required") != [], "an empty list says nothing"
    assert "title" not in schema, "the name of the generated class tells nobody anything"


def test_bounds_and_descriptions_stand_on_the_argument() -> None:
    properties = TOOLS["kit_bounded"].input_schema["properties"]
    assert properties["count"] == {
        "title": "Count",
        "description": "how often",
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
    }
    assert (properties["code"]["minLength"], properties["code"]["maxLength"]) == (2, 4)
    assert properties["code"]["pattern"] == "^[a-z]+$"
    assert properties["tags"]["maxItems"] == 3
    assert properties["tags"]["items"] == {"type": "string", "minLength": 1}


def test_a_struct_is_shared_under_defs_with_titles_of_its_own() -> None:
    schema = TOOLS["kit_nested"].input_schema
    assert schema["properties"]["place"] == {"title": "Place", "$ref": "#/$defs/Place"}
    assert schema["properties"]["others"]["items"] == {"$ref": "#/$defs/Place"}
    place = schema["$defs"]["Place"]
    assert place["description"] == "Where it is."
    assert place["additionalProperties"] is False
    assert place["properties"]["port"]["title"] == "Port"
    assert place["properties"]["port"]["description"] == "TCP port"
    assert place["required"] == ["host"]


def test_an_optional_argument_may_be_null() -> None:
    properties = TOOLS["kit_choice"].input_schema["properties"]
    assert {"type": "null"} in properties["either"]["anyOf"]
    assert properties["either"]["default"] is None
    assert "either" not in TOOLS["kit_choice"].input_schema["required"]


def test_a_literal_is_an_enum_and_a_tuple_has_a_fixed_length() -> None:
    properties = TOOLS["kit_choice"].input_schema["properties"]
    assert properties["kind"]["enum"] == ["a", "b"]
    assert (properties["pair"]["minItems"], properties["pair"]["maxItems"]) == (2, 2)


def test_the_context_is_no_argument() -> None:
    assert list(TOOLS["kit_asker"].input_schema["properties"]) == ["key"]


def test_a_tool_without_arguments_takes_an_empty_object() -> None:
    assert TOOLS["kit_nothing"].input_schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_the_return_type_is_the_output_schema_in_wire_names() -> None:
    assert TOOLS["kit_bounded"].output_schema == {
        "type": "object",
        "properties": {
            "fileName": {"title": "File name", "type": "string"},
            "sizes": {"title": "Sizes", "type": "array", "items": {"type": "integer"}, "default": []},
        },
        "required": ["fileName"],
    }


@pytest.mark.parametrize("name", ["kit_plain", "kit_renamed", "kit_nothing"])
def test_a_result_that_is_no_struct_has_no_output_schema(name: str) -> None:
    assert TOOLS[name].output_schema is None
    assert "outputSchema" not in TOOLS[name].listing()


def test_a_root_that_contains_itself_is_at_the_root_and_under_defs() -> None:
    schema = object_schema(Tree)
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["properties"] == schema["properties"]
    assert "$defs" not in schema["$defs"]["Tree"]


def test_a_root_that_nothing_refers_to_is_not_repeated() -> None:
    assert list(object_schema(Forest)["$defs"]) == ["Tree"]


@pytest.mark.parametrize(
    ("name", "title"),
    [("rules_add_allow", "Rules add allow"), ("mimeType", "Mime type"), ("x", "X"), ("", ""), ("_id", "Id")],
)
def test_a_title_is_the_name_in_words(name: str, title: str) -> None:
    assert title_of(name) == title


class Routed:
    @tool()
    async def ok(
        self, region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})], level: int = 0
    ) -> str:
        """Mirror an argument."""
        return region

    @tool()
    async def wrong(self, sizes: Annotated[list[int], Meta(extra_json_schema={"x-mcp-header": "Sizes"})]) -> str:
        """Mirror what has no header form."""
        return ""


def test_an_argument_with_x_mcp_header_is_known_by_its_header() -> None:
    routed: Any = typed_tool(Routed().ok)
    assert routed.input_schema["properties"]["region"]["x-mcp-header"] == "Region"
    assert routed.mirrored == {"Region": ("region",)}


def test_a_header_for_an_argument_that_has_no_header_form_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(ValueError, match=r"'sizes'.*'array'"):
        typed_tool(Routed().wrong)
