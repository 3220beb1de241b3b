"""Our schemas are real JSON Schema 2020-12, and msgspec accepts exactly what they accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dari.app import build
from dari.core.schema import object_schema
from dari.core.tool import Tool, tools_of
from dari.errors import InvalidInput
from dari.settings import ServeSettings
from tests.support.demo_server import DemoTools
from tests.support.typed_tools import Forest, Kit, Tree

KIT = {tool.name: tool for tool in tools_of(Kit())}
VALIDATORS = {name: jsonschema_rs.Draft202012Validator(tool.input_schema) for name, tool in KIT.items()}
EVERY_TOOL = [*KIT.values(), *tools_of(DemoTools())]

# One difference is known and left out: a pattern's `$` matches before a last newline in Python and not in JSON Schema.
numbers = st.integers(-3, 12) | st.sampled_from([0.5, -1.5, 1e-300, 2.0, -1.0])
texts = st.sampled_from(["", "a", "ab", "abc", "abcd", "abcde", "A1", "가나"])
places = st.fixed_dictionaries({}, optional={"host": texts, "port": st.integers(-1, 2) | texts, "x": texts})
trees: st.SearchStrategy[Any] = st.deferred(
    lambda: st.fixed_dictionaries({"name": texts}, optional={"children": st.lists(trees | texts, max_size=2)})
)
likely = {
    "kit_plain": {"text": texts, "how_many": numbers, "ratio": numbers, "loud": st.booleans()},
    "kit_bounded": {"count": numbers, "code": texts, "tags": st.lists(texts, max_size=4)},
    "kit_nested": {
        "place": places,
        "others": st.lists(places, max_size=2),
        "loose": st.none() | st.fixed_dictionaries({}, optional={"label": texts, "other": texts}),
    },
    "kit_recursive": {"tree": trees},
    "kit_choice": {
        "kind": st.sampled_from(["a", "b", "c"]),
        "either": st.none() | numbers | texts,
        "pair": st.tuples(st.integers(), texts) | st.lists(texts | numbers, max_size=3),
    },
    "kit_table": {"rows": st.dictionaries(texts, st.lists(st.integers() | texts, max_size=2), max_size=2)},
    "kit_asker": {"key": texts},
    "kit_renamed": {"a": numbers, "b": texts},
    "kit_nothing": {},
}
anything = st.none() | st.booleans() | numbers | texts | st.lists(numbers, max_size=2) | places


@st.composite
def arguments(draw: st.DrawFn) -> tuple[str, Any]:
    """A tool with arguments that fit, nearly fit, or do not fit at all."""
    name = draw(st.sampled_from(sorted(likely)))
    given = draw(st.fixed_dictionaries({}, optional=likely[name]))
    if draw(st.integers(0, 3)) == 0 and given:
        given[draw(st.sampled_from(sorted(given)))] = draw(anything)
    if draw(st.integers(0, 5)) == 0:
        given[draw(texts)] = draw(anything)
    return name, given


def accepts(tool: Tool, raw: bytes) -> bool:
    try:
        value = tool.run(raw, None)  # type: ignore[arg-type]
    except InvalidInput:
        return False
    if tool.is_async:
        value.close()
    return True


@settings(deadline=None, max_examples=500)
@given(arguments())
def test_msgspec_and_the_schema_accept_and_reject_the_same_arguments(case: tuple[str, Any]) -> None:
    name, given = case
    is_valid = VALIDATORS[name].is_valid(given)
    event("fits" if is_valid else "does not fit")
    assert accepts(KIT[name], json.dumps(given).encode()) == is_valid


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(sorted(KIT)), anything)
def test_arguments_that_are_no_object_fit_neither(name: str, given: Any) -> None:
    if not isinstance(given, dict):
        assert not VALIDATORS[name].is_valid(given)
        assert not accepts(KIT[name], json.dumps(given).encode())


@pytest.mark.parametrize("tool", EVERY_TOOL, ids=lambda tool: tool.name)
def test_every_schema_is_valid_2020_12(tool: Tool) -> None:
    for schema in filter(None, (tool.input_schema, tool.output_schema)):
        declared = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        jsonschema_rs.meta.validate(declared)
        jsonschema_rs.Draft202012Validator(declared)


def test_every_built_in_schema_is_valid_2020_12(tmp_path: Path) -> None:
    for tool in build(ServeSettings(token_path=tmp_path / "t", socket_path=tmp_path / "s")).registry.tools.values():
        test_every_schema_is_valid_2020_12(tool)


def test_the_default_of_an_argument_fits_its_own_schema() -> None:
    for tool in EVERY_TOOL:
        for name, part in tool.input_schema["properties"].items():
            if "default" in part:
                whole = {"$defs": tool.input_schema.get("$defs", {}), **part}
                assert jsonschema_rs.Draft202012Validator(whole).is_valid(part["default"]), f"{tool.name}.{name}"


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}, True),
        ({"name": "a", "children": [{"name": "b", "children": [{"name": 1}]}]}, False),
        ({"name": "a", "children": [{}]}, False),
    ],
)
def test_a_recursive_schema_reaches_every_depth(value: Any, fits: bool) -> None:
    tree, forest = (jsonschema_rs.Draft202012Validator(object_schema(kind)) for kind in (Tree, Forest))
    assert tree.is_valid(value) is fits
    assert forest.is_valid({"trees": {"x": value}, "tallest": value}) is fits
