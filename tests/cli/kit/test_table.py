from __future__ import annotations

import pytest

from dari.cli.kit.table import (
    first_sentence,
    format_duration,
    format_pairs,
    format_size,
    format_table,
    one_line,
    print_table,
    wrap_prose,
)
from dari.text.width import truncate
from tests.support.remote_command import Screen


def test_columns_line_up_by_screen_cells() -> None:
    assert format_table([("이름", "a"), ("x", "b")]) == ["이름  a", "x     b"]
    assert format_table([("a", "b")], indent="  ") == ["  a  b"]
    assert format_table([]) == []


def test_a_cell_is_one_line_that_no_terminal_obeys() -> None:
    assert one_line("a\nb\x1b[2Jc") == "a\\nb\\x1b[2Jc"
    assert format_table([("a\tb", "c")]) == ["a\\tb  c"]


def test_a_table_is_cut_at_the_edge_of_a_screen_and_never_in_a_pipe() -> None:
    screen, pipe = Screen(tty=True), Screen()
    screen.columns = 30
    for console in (screen, pipe):
        print_table(console, ("NAME", "WHAT"), [("x", "y" * 40)])
    assert max(map(len, screen.shown.splitlines())) == 30
    assert "y" * 40 in pipe.shown


def test_pairs_leave_out_what_has_no_value() -> None:
    assert format_pairs({"on": True, "none": None, "list": [1, "a"], "dict": {"a": 1}}) == [
        "on    on",
        "list  1, a",
        'dict  {"a":1}',
    ]


def test_a_truncated_text_fits_and_ends_with_an_ellipsis() -> None:
    assert truncate("abc", 3) == "abc"
    assert truncate("abcd", 3) == "ab…"
    assert truncate("가나다", 4) == "가…"


def test_prose_wraps_and_keeps_its_own_line_ends() -> None:
    assert wrap_prose("a b\n\nc", 80, "  ") == ["  a b", "", "  c"]


@pytest.mark.parametrize(
    "size, text",
    [(None, "-"), (12, "12 B"), (1234, "1.2 kB"), (123_456, "123 kB"), (999_700, "1.0 MB"), (5_000_000_000, "5.0 GB")],
)
def test_a_size_has_three_digits_and_a_unit(size: int | None, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize("ms, text", [(None, "-"), (12.3, "12 ms"), (1500, "1.5 s"), (90_000, "1.5 min")])
def test_a_duration_is_short(ms: float | None, text: str) -> None:
    assert format_duration(ms) == text


def test_a_sentence_ends_at_its_full_stop_or_paragraph() -> None:
    assert first_sentence("Reads a\nfile. Then more.") == "Reads a file."
    assert first_sentence("Reads a file\n\nMore") == "Reads a file"
    assert first_sentence(None) == ""
