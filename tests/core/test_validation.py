"""A complaint names the argument, its value and the next step."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.core.tool import tools_of
from dari.errors import InvalidInput
from tests.support.typed_tools import Kit

TOOLS = {tool.name: tool for tool in tools_of(Kit())}
PLACE = {"host": "h"}
# Tool, arguments, what the message says.
WRONG: list[tuple[str, Any, str]] = [
    ("kit_plain", {}, "argument 'text' is missing"),
    ("kit_plain", {"text": 1}, "argument 'text' is 1: expected str, got int"),
    ("kit_plain", {"text": None}, "argument 'text' is null: expected str, got null"),
    ("kit_plain", {"text": "a", "loud": "yes"}, "argument 'loud' is \"yes\": expected bool, got str"),
    ("kit_plain", [1], "arguments: expected object, got array"),
    ("kit_plain", "text", "arguments: expected object, got str"),
    ("kit_bounded", {"count": 0}, "argument 'count' is 0: expected int >= 1"),
    ("kit_bounded", {"count": 1, "code": "A1"}, "argument 'code' is \"A1\": expected str matching regex '^[a-z]+$'"),
    ("kit_bounded", {"count": 1, "tags": ["a", ""]}, "argument 'tags[1]' is \"\": expected str of length >= 1"),
    ("kit_nested", {"place": {}}, "argument 'place.host' is missing"),
    ("kit_nested", {"place": {"host": 1}}, "argument 'place.host' is 1: expected str, got int"),
    ("kit_nested", {"place": {"host": "h", "port": 0}}, "argument 'place.port' is 0: expected int >= 1"),
    ("kit_nested", {"place": {"host": "h", "prot": 1}}, "unknown argument 'place.prot'"),
    (
        "kit_nested",
        {"place": PLACE, "others": [PLACE, {"host": []}]},
        "argument 'others[1].host' is []: expected str, got array",
    ),
    (
        "kit_recursive",
        {"tree": {"name": "a", "children": [{"name": "b", "children": [{"name": 3}]}]}},
        "argument 'tree.children[0].children[0].name' is 3: expected str, got int",
    ),
    ("kit_choice", {"kind": "c"}, "argument 'kind' is \"c\": invalid enum value"),
    ("kit_choice", {"kind": "a", "either": 1.5}, "argument 'either' is 1.5: expected int | str | null, got float"),
    ("kit_choice", {"kind": "a", "pair": [1]}, "argument 'pair' is [1]: expected array of length 2"),
    ("kit_table", {"rows": {"a": ["x"]}}, "argument 'rows[...][0]' is not valid: expected int, got str"),
]


def complaint(name: str, raw: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        TOOLS[name].run(raw, None)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(("name", "arguments", "message"), WRONG)
def test_the_message_names_the_argument_by_its_path_and_shows_the_value(
    name: str, arguments: Any, message: str
) -> None:
    error = complaint(name, msgspec.json.encode(arguments))
    assert error.message == message
    assert error.hint


@pytest.mark.parametrize(
    ("name", "arguments", "hint"),
    [
        ("kit_plain", {"text": "a", "how_mny": 1}, "did you mean 'how_many'?"),
        ("kit_plain", {"text": "a", "zzz": 1}, "known arguments: text, how_many, ratio, loud"),
        ("kit_nothing", {"zzz": 1}, "this tool takes no arguments"),
    ],
)
def test_an_unknown_argument_is_answered_with_the_one_that_was_meant(name: str, arguments: Any, hint: str) -> None:
    error = complaint(name, msgspec.json.encode(arguments))
    assert error.message == f"unknown argument '{[*arguments][-1]}'"
    assert error.hint == hint


def test_an_unknown_member_of_a_struct_is_not_compared_with_the_tools_own_arguments() -> None:
    error = complaint("kit_nested", msgspec.json.encode({"place": {"host": "h", "plac": 1}}))
    assert error.message == "unknown argument 'place.plac'"
    assert "did you mean 'place'" not in error.hint
    assert "others" not in error.hint
    assert error.hint


@pytest.mark.parametrize(
    "tool, arguments",
    [
        ("kit_bounded", {"count": "x" * 10_000}),
        ("kit_choice", {"kind": "x" * 10_000}),
        ("kit_plain", {"x" * 10_000: 1}),
    ],
)
def test_a_long_value_or_name_is_cut(tool: str, arguments: dict[str, object]) -> None:
    error = complaint(tool, msgspec.json.encode(arguments))
    assert len(error.message) < 150
    assert "xxx" in error.message


@pytest.mark.parametrize("raw", [b"", b"{", b'{"text":"\xff"}', b'{"text":' + b"[" * 100_000, b"\xff"])
def test_what_is_not_even_json_is_a_complaint_too(raw: bytes) -> None:
    assert complaint("kit_plain", raw).message.startswith("argument")


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("`$.[]ab'", max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(TOOLS)), values)
def test_nothing_but_a_complaint_is_ever_raised(name: str, arguments: Any) -> None:
    tool = TOOLS[name]
    try:
        value = tool.run(msgspec.json.encode(arguments), None)  # type: ignore[arg-type]
    except InvalidInput as error:
        assert error.message
        assert error.hint
    else:
        if tool.is_async:
            value.close()
