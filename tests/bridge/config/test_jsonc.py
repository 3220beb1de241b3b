"""The reader of JSON with comments: the same values as the standard reader, and the place of each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dari.bridge.config.jsonc import parse
from dari.errors import InvalidInput

ANY_PACE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


@ANY_PACE
@given(values, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_what_the_standard_reader_reads_is_read_alike(value: Any, indent: Any, is_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    assert parse(text, "f").plain() == json.loads(text)


@ANY_PACE
@given(values)
def test_every_value_stands_where_it_is_said_to(value: Any) -> None:
    text = json.dumps({"top": value}, indent=2)
    root = parse(text, "f")
    for member in root.walk():
        assert json.loads(text[member.value.start : member.value.end]) == member.value.plain()
        assert text.count("\n", 0, member.start) + 1 == member.line
        if member.key:
            assert json.loads(text[member.start : member.key_end]) == member.key


@ANY_PACE
@given(st.text(max_size=60))
def test_no_text_whatever_breaks_the_reader(text: str) -> None:
    try:
        parse(text, "f")
    except InvalidInput as error:
        assert error.message.startswith("f:")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('// a\n{"a": 1, /* b */ "b": [1, 2,], }', {"a": 1, "b": [1, 2]}),
        ('\ufeff{"a": "// no comment", "b": "/* nor this */"}', {"a": "// no comment", "b": "/* nor this */"}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        (r'"\u00e9\ud83d\ude00\/"', "é😀/"),
        ("[-0, 0.5, 1e3, -1E-2]", [0, 0.5, 1000.0, -0.01]),
    ],
)
def test_comments_trailing_commas_and_marks_are_taken(text: str, value: Any) -> None:
    assert parse(text, "f").plain() == value


@pytest.mark.parametrize(
    "text", ["01", "+1", ".5", "1.", "'a'", '"\\x"', "nan", "{,}", "[,]", "tru", "[1 2]", '{"a":1,,}']
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse(text, "f")


def test_half_a_surrogate_becomes_a_mark() -> None:
    assert parse(r'"\ud800"', "f").plain() == "?"
