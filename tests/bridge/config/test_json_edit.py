"""Edits of a JSON text: the value changes as asked, everything else stays, character by character."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dari.bridge.config import jsonc
from dari.bridge.config.json_edit import JsonText
from dari.errors import NotFound

ANY_PACE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
objects = st.dictionaries(names, values, max_size=5)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A text as a person could have left it: any indentation, any line ending, comments, trailing commas."""
    text = json.dumps(
        {"servers": draw(objects)}, indent=draw(st.sampled_from([None, 0, 2, 4, "\t"])), ensure_ascii=False
    )
    lines = []
    for line in text.split("\n"):
        lines.append(line)
        if draw(st.booleans()) and len(lines) > 1:
            lines[-1] = lines[-1] + draw(st.sampled_from(["", "  // why", " /* so */"]))
        if draw(st.integers(0, 5)) == 0 and "\n" in text:
            lines.append("  // a line of its own")
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"]))


def plain(text: str) -> Any:
    return jsonc.parse(text, "f").plain()


@ANY_PACE
@given(documents(), names, values)
def test_a_value_that_is_set_and_removed_leaves_the_rest(text: str, name: str, value: Any) -> None:
    before = plain(text)
    edited = JsonText(text)
    edited.set(("servers", name), value)
    expected = copy.deepcopy(before)
    expected["servers"][name] = value
    assert plain(edited.text) == expected
    assert list(plain(edited.text)["servers"]) == list(expected["servers"])
    edited.remove(("servers", name))
    del expected["servers"][name]
    assert plain(edited.text) == expected


@ANY_PACE
@given(documents(), names, st.booleans())
def test_a_new_member_that_goes_again_was_never_there(text: str, name: str, value: bool) -> None:
    servers = plain(text)["servers"]
    if name in servers or not servers:
        return
    edited = JsonText(text)
    edited.set(("servers", name), value)
    edited.remove(("servers", name))
    assert edited.text == text


@ANY_PACE
@given(documents(), st.data())
def test_each_member_can_go_and_comments_of_others_stay(text: str, data: st.DataObject) -> None:
    servers = plain(text)["servers"]
    if not servers:
        return
    name = data.draw(st.sampled_from(sorted(servers)))
    edited = JsonText(text)
    edited.remove(("servers", name))
    expected = {key: value for key, value in servers.items() if key != name}
    assert plain(edited.text) == {"servers": expected}


@ANY_PACE
@given(documents(), st.data(), names)
def test_a_member_keeps_its_place_when_it_is_renamed(text: str, data: st.DataObject, new: str) -> None:
    servers = plain(text)["servers"]
    if not servers or new in servers:
        return
    name = data.draw(st.sampled_from(sorted(servers)))
    edited = JsonText(text)
    edited.rename(("servers", name), new)
    assert list(plain(edited.text)["servers"]) == [new if key == name else key for key in servers]


@ANY_PACE
@given(st.lists(values, max_size=4), values, st.sampled_from([None, 2]), st.data())
def test_lists_grow_at_the_end_and_lose_any_element(
    items: list[Any], value: Any, indent: int | None, data: Any
) -> None:
    edited = JsonText(json.dumps({"l": items}, indent=indent))
    edited.append(("l",), value)
    assert plain(edited.text) == {"l": [*items, value]}
    index = data.draw(st.integers(0, len(items)))
    edited.remove(("l", index))
    left = [*items, value]
    del left[index]
    assert plain(edited.text) == {"l": left}


COMMENTED = """{
  // servers of mine
  "servers": [
    // the first
    { "id": "a", "baseUrl": "http://a" }, // fast
    // the second
    {
      "id": "b",
      "command": "x" // local
    } // slow
  ],
  "unknown": {"kept": [1,  2]} // odd spacing
}
"""


def test_a_removed_server_takes_its_comments_along_and_no_other() -> None:
    edited = JsonText(COMMENTED)
    edited.remove(("servers", 0))
    assert edited.text == COMMENTED.replace('    // the first\n    { "id": "a", "baseUrl": "http://a" }, // fast\n', "")


def test_the_last_one_takes_the_comma_before_it_along() -> None:
    edited = JsonText(COMMENTED)
    edited.remove(("servers", 1))
    assert (
        edited.text
        == """{
  // servers of mine
  "servers": [
    // the first
    { "id": "a", "baseUrl": "http://a" } // fast
  ],
  "unknown": {"kept": [1,  2]} // odd spacing
}
"""
    )


def test_what_is_added_follows_the_indentation_of_its_neighbours() -> None:
    edited = JsonText(COMMENTED)
    edited.append(("servers",), {"id": "c", "args": ["-y"]})
    assert (
        """    }, // slow
    {
      "id": "c",
      "args": [
        "-y"
      ]
    }
  ],"""
        in edited.text
    )


@pytest.mark.parametrize("unit", ["    ", "\t"])
def test_the_unit_of_indentation_is_kept(unit: str) -> None:
    edited = JsonText(json.dumps({"servers": {}}, indent=unit))
    edited.set(("servers", "a"), {"command": "x"})
    assert edited.text == json.dumps({"servers": {"a": {"command": "x"}}}, indent=unit)


def test_a_key_that_stands_twice_goes_twice() -> None:
    edited = JsonText('{"a": {"k": 1, "b": 2, "k": 3}}')
    edited.remove(("a", "k"))
    assert plain(edited.text) == {"a": {"b": 2}}


def test_what_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(NotFound):
        JsonText("{}").remove(("a",))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_comments_that_an_empty_line_parts_from_a_removed_server_stay(newline: str) -> None:
    text = """{
  "servers": [
    // what the team shares

    // the first
    { "id": "a", "baseUrl": "http://a" },
    /* what is only mine

       (ask me) */

    // the second
    { "id": "b", "baseUrl": "http://b" }
  ]
}
""".replace("\n", newline)
    edited = JsonText(text)
    edited.remove(("servers", 0))
    mine = '    // the first\n    { "id": "a", "baseUrl": "http://a" },\n'.replace("\n", newline)
    assert edited.text == text.replace(mine, "")
    edited.remove(("servers", 0))
    assert plain(edited.text) == {"servers": []}
    assert "what the team shares" in edited.text and "(ask me) */" in edited.text and "second" not in edited.text


def test_a_comment_below_the_only_server_stays_when_it_is_removed() -> None:
    edited = JsonText('{"servers": [\n  { "id": "a" } // fast\n  // to add: github\n]}\n')
    edited.remove(("servers", 0))
    assert edited.text == '{"servers": [\n  // to add: github\n]}\n'
