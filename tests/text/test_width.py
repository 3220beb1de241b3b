"""Text in columns of a terminal."""

from __future__ import annotations

import pytest

from dari.text.width import slice_cells, split_cells, take_columns, text_width, truncate


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("다리", 4), ("Ａ", 2), ("e\u0301", 1), ("👍", 2), ("a\u200bb", 2), ("naïve", 5)],
)
def test_the_width_in_columns(text: str, width: int) -> None:
    assert text_width(text) == width


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [("다리", 4, "다리"), ("다리", 3, "다…"), ("다리다", 4, "다…"), ("abcdef", 4, "abc…"), ("abc", 0, "…")],
)
def test_a_text_that_does_not_fit_ends_in_an_ellipsis(text: str, columns: int, shown: str) -> None:
    assert truncate(text, columns) == shown


def test_a_wide_character_is_never_cut_in_half() -> None:
    assert take_columns("a다b", 2) == "a"
    assert take_columns("a다b", 3) == "a다"


def test_cells_of_wide_and_combining_characters() -> None:
    row = split_cells("다e\u0301b")
    assert row == ["다", "", "e\u0301", "b"]
    assert slice_cells(row, 2, None) == "e\u0301b"
