"""`x-mcp-header` is allowed on a string, integer or boolean that is reached through `properties` alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.core.header_params import find_header_params, value_at


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def marked(kind: str = "string", token: Any = "Region") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": token}


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_a_marked_argument_is_found_by_its_header(kind: str) -> None:
    assert find_header_params(schema(region=marked(kind), other={"type": "string"})) == {"Region": ("region",)}


def test_a_marked_member_of_an_object_has_its_whole_path() -> None:
    nested = schema(outer=schema(inner=schema(deep=marked(token="Deep")), flat=marked(token="Flat")))
    assert find_header_params(nested) == {"Deep": ("outer", "inner", "deep"), "Flat": ("outer", "flat")}


@pytest.mark.parametrize("nothing", [{}, schema(), schema(a={"type": "string"}), True, None, []])
def test_a_schema_without_marks_mirrors_nothing(nothing: Any) -> None:
    assert find_header_params(nothing) == {}


@pytest.mark.parametrize("kind", ["number", "array", "object", "null", None, ["string", "null"]])
def test_other_types_are_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="'region'"):
        find_header_params(schema(region=marked(kind)))


@pytest.mark.parametrize("token", ["", "a b", "a:b", "é", "a\r\n", 5, None, ["x"]])
def test_what_is_no_header_token_is_refused(token: Any) -> None:
    with pytest.raises(ValueError, match="not a header token"):
        find_header_params(schema(region=marked(token=token)))


def test_a_header_is_used_once_in_any_spelling() -> None:
    with pytest.raises(ValueError, match="used twice"):
        find_header_params(schema(a=marked(token="Region"), b=marked(token="rEGION")))


@pytest.mark.parametrize(
    "hidden",
    [
        marked(),
        schema(a={"type": "array", "items": marked()}),
        schema(a={"type": "array", "prefixItems": [marked()]}),
        schema(a={"anyOf": [marked(), {"type": "null"}]}),
        schema(a={"type": "object", "additionalProperties": marked()}),
        schema(a={"type": "object", "patternProperties": {"x": marked()}}),
        {"type": "object", "$defs": {"Region": marked()}},
        {"type": "object", "if": schema(a=marked())},
        {"type": "object", "allOf": [schema(a=marked())]},
        {"type": "object", "not": {"not": marked()}},
        {"type": "object", "dependentSchemas": {"a": schema(b=marked())}},
    ],
)
def test_a_mark_where_no_single_argument_is_meant_is_refused(hidden: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be on an argument"):
        find_header_params(hidden)


@pytest.mark.parametrize("keyword", ["default", "const", "examples", "enum", "description"])
def test_a_mark_inside_a_value_is_data(keyword: str) -> None:
    assert find_header_params(schema(a={"type": "string", keyword: {"x-mcp-header": "Region"}})) == {}


def test_an_argument_named_like_a_keyword_is_an_argument() -> None:
    assert find_header_params(schema(items=marked(token="I"), properties=marked(token="P"))) == {
        "I": ("items",),
        "P": ("properties",),
    }


@pytest.mark.parametrize(
    ("arguments", "value"),
    [({"a": {"b": 1}}, 1), ({"a": {}}, None), ({}, None), ({"a": 1}, None), ({"a": None}, None), ([], None)],
)
def test_the_value_at_a_path_is_none_where_it_is_absent(arguments: Any, value: Any) -> None:
    assert value_at(arguments, ("a", "b")) == value


words = st.sampled_from(["properties", "items", "anyOf", "$defs", "a", "type", "string", "x-mcp-header", "not", "if"])
schemas = st.recursive(
    words | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(schemas)
def test_any_schema_is_read_or_refused_and_nothing_else(given: Any) -> None:
    try:
        found = find_header_params(given)
    except ValueError as error:
        assert "x-mcp-header" in str(error)
    else:
        assert all(isinstance(path, tuple) and path for path in found.values())
