"""Rows of one terminal drawn on another look the same."""

from __future__ import annotations

from typing import Literal

import pytest

from dari.terminal.engine.engine import make_engine
from dari.terminal.viewers.frames import color, write_row

STYLED = (
    b"plain \x1b[1mbold\x1b[0m \x1b[31;44mred on blue\x1b[0m \x1b[7minverse\x1b[27m \x1b[4munder\x1b[4:3mcurly\x1b[0m "
    b"\x1b[38;2;1;2;3mtrue\x1b[9mstrike\x1b[0m\x1b[2mdim\x1b[0m"
)


@pytest.mark.parametrize(
    "data",
    [STYLED, "한국어 日本語 e\u0301 👩‍👩‍👧 🇰🇷 x".encode(), b"\x1b[44m\x1b[K", b"a\tb\tc", b"", b"x" * 80],
)
def test_a_row_drawn_again_has_the_same_cells(data: bytes) -> None:
    source, target = make_engine(80, 2), make_engine(80, 2)
    source.feed(data)
    target.feed(write_row(source.grid().rows[0].cells, 80).encode())
    ours, theirs = source.grid().rows[0], target.grid().rows[0]
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.text or " ") == (other.text or " ")
        assert (mine.fg, mine.bg, mine.bold, mine.inverse) == (other.fg, other.bg, other.bold, other.inverse)
        assert (mine.underline, mine.strike, mine.dim) == (other.underline, other.strike, other.dim)
    source.close()
    target.close()


def test_a_row_that_is_cut_is_exactly_as_wide_as_asked_for() -> None:
    engine = make_engine(20, 1)
    engine.feed("abc한글 x".encode())
    cells = engine.grid().rows[0].cells
    assert write_row(cells, 4) == "abc "
    assert write_row(cells, 5) == "abc한"
    assert write_row(cells, 30) == "abc한글 x" + " " * 21
    engine.close()


def test_a_terminal_with_few_colours_gets_the_nearest_ones() -> None:
    assert color((255, 0, 0), "256") == "8;5;196"
    assert color((8, 8, 8), "256") == "8;5;232"
    assert color((128, 128, 128), "256") == "8;5;244"
    assert color((1, 2, 3), "true") == "8;2;1;2;3"


@pytest.mark.parametrize("engine", ["ghostty", "bittty"])
def test_colours_of_the_palette_stay_numbers_until_a_program_changes_one(engine: Literal["ghostty", "bittty"]) -> None:
    screen = make_engine(40, 2, prefer=engine)
    screen.feed(b"\x1b[31;44ma\x1b[0m\x1b[92;101mb\x1b[0m\x1b[38;5;208mc\x1b[0m\x1b[38;2;1;2;3md\x1b[0m")
    assert write_row(screen.grid().rows[0].cells, 4) == (
        "\x1b[0;31;44ma\x1b[0;92;101mb\x1b[0;38;5;208mc\x1b[0;38;2;1;2;3md\x1b[0m"
    )
    screen.feed(b"\x1b]4;1;rgb:12/34/56\x07\r\n\x1b[31me\x1b[0m")
    assert write_row(screen.grid().rows[1].cells, 1) == "\x1b[0;38;2;18;52;86me\x1b[0m"
    screen.close()
