"""Single tools on and off in an entry, beside patterns that a person wrote."""

from __future__ import annotations

from typing import Any

import pytest

from dari.bridge.config.tool_switch import is_tool_on, switch_tools
from dari.errors import Conflict


def is_on(entry: dict[str, Any], name: str) -> bool:
    rules = entry.get("tools", {})
    denied = [*rules.get("deny", []), *entry.get("excludeTools", []), *entry.get("disabledTools", [])]
    return is_tool_on(name, rules.get("allow", entry.get("includeTools", ["*"])), denied)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x"},
        {"command": "x", "tools": {"deny": ["other"], "confirm": ["*"]}},
        {"command": "x", "tools": {"allow": ["read_*", "write"]}},
        {"command": "x", "includeTools": ["write"], "excludeTools": ["nothing"], "disabledTools": ["none"]},
    ],
)
def test_a_tool_goes_off_and_on_again(entry: dict[str, Any]) -> None:
    off = switch_tools(entry, ["write"], is_on=False)
    assert not is_on(off, "write") and is_on(off, "read_file") == is_on(entry, "read_file")
    assert switch_tools(off, ["write"], is_on=True) == entry


def test_a_tool_outside_of_the_allowed_ones_is_added_to_them() -> None:
    entry = {"command": "x", "tools": {"allow": ["read_*"]}}
    assert switch_tools(entry, ["write", "read_file"], is_on=True)["tools"] == {"allow": ["read_*", "write"]}


def test_tools_that_another_program_turned_off_go_on() -> None:
    entry = {"command": "x", "excludeTools": ["a", "b"], "disabledTools": ["a"]}
    changed = switch_tools(entry, ["a"], is_on=True)
    assert changed["excludeTools"] == ["b"] and is_on(changed, "a")


def test_a_name_with_the_signs_of_a_pattern_names_that_tool_alone() -> None:
    off = switch_tools({"command": "x"}, ["a*", "b?[c]"], is_on=False)
    assert not is_on(off, "a*") and not is_on(off, "b?[c]")
    assert is_on(off, "ab") and is_on(off, "bxc")
    assert "tools" not in switch_tools(off, ["a*", "b?[c]"], is_on=True)


def test_a_pattern_that_a_person_wrote_is_not_weakened_behind_their_back() -> None:
    with pytest.raises(Conflict) as refusal:
        switch_tools({"command": "x", "tools": {"deny": ["delete_*"]}}, ["delete_file"], is_on=True)
    assert "delete_*" in refusal.value.message
