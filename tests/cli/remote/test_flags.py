"""Flags that a schema makes."""

from __future__ import annotations

from typing import Any

import pytest

from dari.cli.remote.arguments import list_missing, merge_arguments, read_flags
from dari.cli.remote.input_schema import ObjectSchema
from dari.errors import InvalidInput
from tests.support.workshop import RANGE, VARIETY, obj

SCHEMA = obj(VARIETY, "path", additionalProperties=False, **{"$defs": {"Range": RANGE}})


def read(*words: str, schema: Any = SCHEMA) -> dict[str, Any]:
    return read_flags(words, ObjectSchema(schema), "variety")


def refused(*words: str, schema: Any = SCHEMA) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read(*words, schema=schema)
    return caught.value


@pytest.mark.parametrize(
    "words, given",
    [
        (("--path", "/x"), {"path": "/x"}),
        (("--path=/x=y",), {"path": "/x=y"}),
        (("--path=",), {"path": ""}),
        (("--path", "-"), {"path": "-"}),
        (("--path=--x",), {"path": "--x"}),
        (("--head", "5"), {"head": 5}),
        (("--head", "-5"), {"head": -5}),
        (("--head", "123456789012345678901234567890"), {"head": 123456789012345678901234567890}),
        (("--ratio", "0.5"), {"ratio": 0.5}),
        (("--ratio", "3"), {"ratio": 3}),
        (("--ratio", "1e3"), {"ratio": 1000.0}),
        (("--follow",), {"follow": True}),
        (("--no-follow",), {"follow": False}),
        (("--follow=no",), {"follow": False}),
        (("--follow", "false", "--head", "1"), {"follow": False, "head": 1}),
        (("--follow", "--head", "1"), {"follow": True, "head": 1}),
        (("--tags", "a", "--tags", "b"), {"tags": ["a", "b"]}),
        (("--tags", '["a","b"]', "--tags", "c"), {"tags": ["a", "b", "c"]}),
        (("--tags", "1"), {"tags": ["1"]}),
        (("--sizes", "1", "--sizes", "2"), {"sizes": [1, 2]}),
        (("--mode", "fast"), {"mode": "fast"}),
        (("--range", '{"from": 1}'), {"range": {"from": 1}}),
        (("--range.from", "1", "--range.to", "2"), {"range": {"from": 1, "to": 2}}),
        (("--range", '{"from": 1}', "--range.to", "2"), {"range": {"from": 1, "to": 2}}),
        (("--agent-id", "x"), {"agentId": "x"}),
        (("--agent_id", "x"), {"agentId": "x"}),
        (("--maybe", "null"), {"maybe": None}),
        (("--maybe", "3"), {"maybe": 3}),
        (("--anything", "word"), {"anything": "word"}),
        (("--anything", "[1]"), {"anything": [1]}),
    ],
)
def test_words_become_values_of_the_type_that_the_schema_says(words: tuple[str, ...], given: dict[str, Any]) -> None:
    assert read(*words) == given


def test_a_slip_gets_the_flag_that_was_meant_and_the_list_of_all() -> None:
    error = refused("--pth", "/x")
    assert "--pth" in error.message
    assert error.hint.startswith("did you mean --path?") and "--agentId" in error.hint


def test_a_member_that_an_object_does_not_have_is_refused_when_the_object_is_closed() -> None:
    schema = obj({"range": {**RANGE, "additionalProperties": False}})
    assert "--range.form" in refused("--range.form", "1", schema=schema).message


@pytest.mark.parametrize(
    "words, said",
    [
        (("--head", "five"), "must be integer, got 'five'"),
        (("--head", "5.5"), "must be integer, got '5.5'"),
        (("--ratio", "nan"), "must be number, got 'nan'"),
        (("--ratio", "1e999"), "must be number, got '1e999'"),
        (("--follow=maybe",), "must be boolean, got 'maybe'"),
        (("--mode", "fats"), "is not one of its values"),
        (("--range", "1"), "must be object, got '1'"),
        (("--sizes", "a"), "must be integer, got 'a'"),
        (("--path",), "--path needs a value"),
        (("--path", "--head", "1"), "--path needs a value"),
        (("--path", "a", "--path", "b"), "given twice"),
        (("--no-follow=1",), "takes no value"),
        (("--no-path", "x"), "no argument --no-path"),
        (("loose",), "'loose' belongs to no argument"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_flag(words: tuple[str, ...], said: str) -> None:
    assert said in refused(*words).message


def test_a_wrong_choice_gets_the_right_one() -> None:
    assert refused("--mode", "fats").hint == "did you mean fast? one of: fast, slow"


def test_a_word_without_a_flag_gets_the_flag_it_may_be_for() -> None:
    assert refused("notes.txt").hint == "name the argument: path=notes.txt, or --path notes.txt"


def test_a_tool_that_says_nothing_about_its_arguments_takes_any() -> None:
    given = read("--x", "1", "--y", "z", schema={"type": "object"})
    assert given == {"x": 1, "y": "z"}


def test_a_tool_without_arguments_takes_none() -> None:
    assert refused("--x", "1", schema=obj()).hint == "its arguments: none"


def test_arguments_of_every_branch_are_known_and_only_sure_ones_are_required() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
        "oneOf": [{"properties": {"c": {"type": "string"}}, "required": ["c"]}, {}],
    }
    assert read("--b", "1", "--c", "x", schema=schema) == {"b": 1, "c": "x"}
    assert list_missing(ObjectSchema(schema), {}) == ["--a (string)", "--b (integer)"]


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert read("--x", "1", schema=schema) == {"x": 1}
    tree = obj({"node": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": obj({"next": {"$ref": "#/$defs/N"}})}})
    assert read("--node.next.next", "{}", schema=tree) == {"node": {"next": {"next": {}}}}


def test_flags_win_over_json_member_by_member() -> None:
    assert merge_arguments({"a": 1, "o": {"x": 1, "y": 2}}, {"o": {"y": 3}}) == {"a": 1, "o": {"x": 1, "y": 3}}
