"""Two engines that know nothing of each other show the same for streams that nobody wrote by hand."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dari.terminal.engine.engine import Engine
from dari.terminal.engine.grid import Cell, Row
from tests.support.screens import screen

COLS, ROWS = 20, 6

words = st.text(st.sampled_from("abc xyz,.09") | st.sampled_from("é한字あ"), min_size=1, max_size=30)
line_ends = st.sampled_from(["\r\n", "\n", "\r", "\t", "\b"])
colors = st.one_of(
    st.sampled_from([0, 1, 2, 3, 4, 7, 9, 22, 23, 24, 27, 29, 39, 49]).map(str),
    st.integers(30, 37).map(str),
    st.integers(40, 47).map(str),
    st.integers(90, 97).map(str),
    st.integers(0, 255).map(lambda number: f"38;5;{number}"),
    st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255)).map(
        lambda rgb: "48;2;{};{};{}".format(*rgb)
    ),
)
sgr = st.lists(colors, min_size=1, max_size=3).map(lambda codes: f"\x1b[{';'.join(codes)}m")
moves = st.one_of(
    st.tuples(st.integers(1, ROWS + 1), st.integers(1, COLS + 1)).map(lambda place: "\x1b[{};{}H".format(*place)),
    st.tuples(st.integers(1, 9), st.sampled_from("ABCDEFGd")).map(lambda move: "\x1b[{}{}".format(*move)),
)
edits = st.one_of(
    st.tuples(st.integers(0, 2), st.sampled_from("JK")).map(lambda edit: "\x1b[{}{}".format(*edit)),
    st.tuples(st.integers(1, 4), st.sampled_from("@PXLM")).map(lambda edit: "\x1b[{}{}".format(*edit)),
)
plain = st.lists(words | line_ends, max_size=30).map("".join)
styled = st.lists(words | line_ends | sgr, max_size=30).map("".join)
drawn = st.lists(words | line_ends | sgr | moves | edits, max_size=30).map("".join)


def lines(engine: Engine) -> list[str]:
    """Without the last column of rows before a wide character that did not fit there: one engine blanks it."""
    rows = list(engine.grid(-engine.history))
    shown = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        is_cut = after is not None and after[0].width == 2
        shown.append(Row(row.cells[:-1]).text if is_cut else row.text)
    return shown


def place(engine: Engine) -> tuple[int, int]:
    return engine.cursor_column, engine.cursor.row


@settings(max_examples=150, deadline=None, derandomize=True)
@given(plain)
def test_plain_text_looks_the_same(data: str) -> None:
    ours, theirs = screen("ghostty", data), screen("bittty", data)
    assert lines(ours) == lines(theirs)
    assert place(ours) == place(theirs)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(styled)
def test_every_cell_has_the_same_colours_and_styles(data: str) -> None:
    ours, theirs = screen("ghostty", data), screen("bittty", data)
    assert [seen_row(row) for row in ours.grid()] == [seen_row(row) for row in theirs.grid()]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(drawn)
def test_what_is_drawn_all_over_the_screen_looks_the_same(data: str) -> None:
    ours, theirs = screen("ghostty", data), screen("bittty", data)
    assert lines(ours) == lines(theirs)
    assert place(ours) == place(theirs)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(drawn, st.lists(st.integers(0, 400), max_size=5))
def test_how_the_stream_is_cut_makes_no_difference(data: str, cuts: list[int]) -> None:
    raw = data.encode()
    for name in ("ghostty", "bittty"):
        whole, cut = screen(name, raw), screen(name)
        edges = [0, *sorted(min(edge, len(raw)) for edge in cuts), len(raw)]
        for start, end in pairwise(edges):
            cut.feed(raw[start:end])
        assert cut.grid() == whole.grid()
        assert cut.consumed == whole.consumed == len(raw)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(styled)
def test_text_with_colours_draws_the_same_screen_again(data: str) -> None:
    for name in ("ghostty", "bittty"):
        first = screen(name, data)
        again = screen(name, first.text(0, ROWS, form="vt").replace("\n", "\r\n"), rows=ROWS + 1)
        assert [seen_row(row) for row in again.grid(0, ROWS)] == [seen_row(row) for row in first.grid(0, ROWS)]


def seen_row(row: Row) -> list[tuple[object, ...]]:
    cells = list(row.cells)
    if not cells[-1].text and cells[-1].width:
        cells.pop()  # maybe too narrow for a wide character that went to the next row: filled as each engine likes
    return [seen(cell) for cell in cells]


def seen(cell: Cell) -> tuple[object, ...]:
    """A blank by its colour alone: what is left of a wide character that was cut is styled as each engine likes."""
    if not cell.text:
        return "", cell.width, cell.bg
    lines = (cell.underline, cell.strike, cell.inverse)
    return (cell.text, cell.width, cell.bg, cell.fg, *lines, cell.bold, cell.italic, cell.dim)
