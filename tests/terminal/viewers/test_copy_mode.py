"""Copy mode on a screen without a program: movement, search, selection, and text that moves meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dari.terminal.engine.engine import Engine, make_engine
from dari.terminal.engine.grid import Grid
from dari.terminal.viewers.copy_mode import CopyMode, Position

COLS, ROWS = 20, 5


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = make_engine(COLS, ROWS)
    made.on_reply = lambda data: None
    yield made
    made.close()


def print_lines(engine: Engine, first: int, last: int) -> None:
    engine.feed("".join(f"line {number}\r\n" for number in range(first, last + 1)).encode())


def shown(engine: Engine, mode: CopyMode) -> list[str]:
    back = mode.scrolled
    return [row.text for row in engine.grid(-back, engine.rows - back)]


def test_the_view_follows_the_cursor_up_and_down_and_stops_at_both_ends(engine: Engine) -> None:
    print_lines(engine, 1, 30)
    mode = CopyMode(engine)
    mode.move(rows=-10)
    assert shown(engine, mode)[0] == "line 21"
    assert mode.cursor == Position(0, 0)
    mode.move(rows=-1000)
    assert shown(engine, mode)[0] == "line 1"
    mode.move(rows=1000)
    assert (mode.scrolled, mode.cursor.row) == (0, ROWS - 1)


def test_a_page_moves_the_view_and_the_cursor_with_it(engine: Engine) -> None:
    print_lines(engine, 1, 30)
    mode = CopyMode(engine)
    mode.scroll(-8)
    assert (shown(engine, mode)[0], mode.cursor.row) == ("line 19", ROWS - 1)
    mode.scroll(-100)
    mode.scroll(-100)
    assert (shown(engine, mode)[0], mode.cursor.row) == ("line 1", 0)


def test_what_is_looked_at_stays_while_output_goes_on(engine: Engine) -> None:
    print_lines(engine, 1, 30)
    mode = CopyMode(engine)
    mode.move(rows=-12)
    before, cursor = shown(engine, mode), mode.cursor
    print_lines(engine, 31, 60)
    assert shown(engine, mode) == before
    assert mode.cursor == cursor


def test_a_search_goes_up_and_down_and_around_the_end(engine: Engine) -> None:
    print_lines(engine, 1, 30)
    mode = CopyMode(engine)
    assert mode.search("line 2", is_upwards=True)
    assert shown(engine, mode)[mode.cursor.row] == "line 29"
    assert mode.search_again()
    assert shown(engine, mode)[mode.cursor.row] == "line 28"
    assert mode.search_again(is_reversed=True)
    assert shown(engine, mode)[mode.cursor.row] == "line 29"
    assert mode.search("line 1", is_upwards=False)
    assert shown(engine, mode)[mode.cursor.row] == "line 1"
    assert not mode.search("nowhere", is_upwards=True)


def test_upper_case_in_the_text_makes_the_case_count(engine: Engine) -> None:
    engine.feed(b"error one\r\nERROR two\r\n")
    mode = CopyMode(engine)
    assert mode.search("ERROR", is_upwards=True) and mode.cursor.row == 1
    assert mode.search_again() and mode.cursor.row == 1
    assert mode.search("error", is_upwards=True) and mode.cursor.row == 0


def test_a_match_after_wide_characters_is_at_its_column(engine: Engine) -> None:
    engine.feed("한글 word\r\n".encode())
    mode = CopyMode(engine)
    assert mode.search("word", is_upwards=True)
    assert mode.cursor == Position(0, 5)


@pytest.mark.parametrize("is_upwards", [True, False])
def test_every_match_is_visited_once_in_its_order(engine: Engine, is_upwards: bool) -> None:
    engine.feed("een zee\r\nnot\r\n한e글ee\r\n".encode())
    print_lines(engine, 1, 2)
    mode = CopyMode(engine)
    places = [(0, 0), (0, 1), (0, 5), (0, 6), (2, 2), (2, 5), (2, 6), (3, 3), (4, 3)]
    print_lines(engine, 3, 30)
    history = engine.history
    seen = []
    for _ in range(2 * 37):
        assert mode.search("e", is_upwards=is_upwards)
        seen.append((mode.cursor.row - mode.scrolled + history, mode.cursor.col))
    every = [*places, *((row, 3) for row in range(5, 33))]
    assert seen[:37] == seen[37:]
    first = seen.index((0, 0))
    assert seen[first : first + 37] == (every if not is_upwards else [every[0], *every[:0:-1]])


@pytest.mark.parametrize("is_upwards", [True, False])
def test_a_search_looks_at_the_cells_of_few_rows_however_many_match(
    monkeypatch: pytest.MonkeyPatch, is_upwards: bool
) -> None:
    engine = make_engine(COLS, ROWS, 5000)
    engine.feed(b"eeeeeeeeeeeeeeee\r\n" * 4000)
    looks = 0
    grid = engine.grid

    def counted(start: int = 0, end: int | None = None) -> Grid:
        nonlocal looks
        looks += 1
        return grid(start, end)

    monkeypatch.setattr(engine, "grid", counted)
    mode = CopyMode(engine)
    assert mode.search("e", is_upwards=is_upwards)
    assert mode.search_again()
    assert not mode.search("x", is_upwards=is_upwards)
    assert looks <= 6
    engine.close()


def test_selected_rows_are_copied_without_the_blanks_at_their_ends(engine: Engine) -> None:
    print_lines(engine, 1, 30)
    mode = CopyMode(engine)
    mode.search("line 7", is_upwards=True)
    mode.move(cols=5)
    mode.select()
    mode.search("line 9", is_upwards=False)
    mode.go_to_row_end()
    assert mode.selected_text() == "7\nline 8\nline 9"
    assert mode.clear() and mode.selected_text() == ""


def test_a_selection_backwards_is_the_same_text(engine: Engine) -> None:
    engine.feed(b"one two three")
    mode = CopyMode(engine)
    mode.go_to_row_start()
    mode.move(cols=6)
    mode.select()
    mode.move(cols=-2)
    assert mode.selected_text() == "two"


def test_rows_of_one_wrapped_line_are_copied_as_one_line(engine: Engine) -> None:
    engine.feed(b"x" * (COLS + 5) + b"\r\nend")
    mode = CopyMode(engine)
    mode.move(rows=-10)
    mode.go_to_row_start()
    mode.select()
    mode.move(rows=10)
    mode.go_to_row_end()
    assert mode.selected_text().rstrip() == "x" * (COLS + 5) + "\nend"


def test_a_selection_is_shown_inverted_and_moves_with_the_text(engine: Engine) -> None:
    print_lines(engine, 1, 3)
    mode = CopyMode(engine)
    mode.search("line 2", is_upwards=True)
    mode.select()
    mode.move(cols=3)

    def inverted() -> list[str]:
        back = mode.scrolled
        rows = engine.grid(-back, engine.rows - back).rows
        marked = [mode.highlight(number, row.cells) for number, row in enumerate(rows)]
        return ["".join(cell.text for cell in cells if cell.inverse) for cells in marked]

    assert inverted() == ["", "line", "", "", ""]
    print_lines(engine, 4, 40)
    assert [text for text in inverted() if text] == ["line"]
    assert mode.selected_text() == "line"
