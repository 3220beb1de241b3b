"""YAML files: a stranger's project may hold one, and it is read before anybody has trusted it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from dari.bridge.config.loader import FileContents, read_contents
from dari.bridge.config.profile import StdioSettings


def read(text: str) -> FileContents:
    return read_contents(text.encode(), Path("/p/.crewx/mcp.yaml"), "project")


@pytest.mark.parametrize(
    "text, said",
    [
        ("version: '1'\nx: !!int abc\n", "mcp.yaml:2: 'abc' does not fit its type, int"),
        ("x: !!bool abc\n", "mcp.yaml:1"),
        ("x: !!float abc\n", "mcp.yaml:1"),
        (f"x: {'9' * 5000}\n", "mcp.yaml:1"),
        (f"x: {'[' * 2000}{']' * 2000}\n", "nested deeper than 100 levels"),
        (f"x: {'[' * 150}{']' * 150}\n", "mcp.yaml:1: nested deeper than 100 levels"),
        (f"x: {'a' * 300_000}\n", "a YAML file at most 262144"),
    ],
)
def test_yaml_that_has_no_value_is_a_problem_of_its_file_alone(text: str, said: str) -> None:
    contents = read(text)
    assert not contents.is_readable and said in contents.problems[0]


def test_a_date_is_the_text_that_was_typed_also_one_that_no_calendar_has() -> None:
    (profile,) = read("servers:\n  - id: a\n    command: 2026-99-99\n    args: [2026-11-18]\n").profiles
    assert isinstance(profile.connection, StdioSettings)
    assert (profile.connection.command, profile.connection.args) == ("2026-99-99", ("2026-11-18",))


def test_merges_that_double_with_every_level_end_before_they_fill_the_memory() -> None:
    levels = ["&l0 {a: 1}", *(f"&l{at} {{<<: [*l{at - 1}, *l{at - 1}]}}" for at in range(1, 23))]
    tracemalloc.start()
    try:
        contents = read(f"x: {{<<: [{', '.join(levels)}]}}")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "aliases expand without end" in contents.problems[0]
    assert peak_bytes < 16_000_000
