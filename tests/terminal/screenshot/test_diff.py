"""A difference names exactly what changed, in cells and in pixels, and survives being stored."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from typing import Literal

import pytest

from dari.errors import InvalidInput
from dari.terminal.engine.engine import make_engine
from dari.terminal.screenshot.diff import ScreenCapture, ScreenDiff, visual_diff
from tests.terminal.screenshot.shots import capture, painter

MARK = (255, 64, 160)


def diff(before: str | ScreenCapture, after: str | ScreenCapture) -> ScreenDiff:
    first, second = (capture(one) if isinstance(one, str) else one for one in (before, after))
    return visual_diff(first, second, painter())


def test_equal_captures_have_no_difference() -> None:
    same = diff("한글 text\nmore", "한글 text\nmore")

    assert same.is_same
    assert (same.cells, same.rows, same.boxes, same.pixels_changed) == ((), (), (), 0)
    assert same.pixels == 200 * 80


def test_one_changed_letter_is_one_cell_and_one_box_inside_it() -> None:
    found = diff("hello\nworld", "hello\nworle")

    (cell,) = found.cells
    assert (cell.row, cell.col, cell.kind, cell.before, cell.after, cell.style) == (1, 4, "text", "d", "e", ())
    (row,) = found.rows
    assert (row.row, row.before, row.after, row.spans) == (1, "world", "worle", ((4, 5),))
    (box,) = found.boxes
    assert 40 <= box.left < box.right <= 50 and 20 <= box.top < box.bottom <= 40
    assert 0 < found.pixels_changed <= (box.right - box.left) * (box.bottom - box.top)


def test_a_change_of_attributes_only_is_told_as_such() -> None:
    found = diff("menu item", "menu \x1b[7;31mi\x1b[0mtem")

    (cell,) = found.cells
    assert (cell.kind, cell.col, cell.before, cell.after) == ("style", 5, "i", "i")
    assert set(cell.style) == {"fg", "inverse"}
    assert found.rows[0].before == found.rows[0].after
    assert found.pixels_changed == 200  # the whole cell is filled now


def test_a_wide_character_changes_in_both_of_its_cells() -> None:
    found = diff("한", "글")
    assert [(cell.col, cell.before, cell.after) for cell in found.cells] == [(0, "한", "글")]
    (box,) = found.boxes
    assert box.left < 10 < box.right

    wider = diff("ab", "한")
    assert [(cell.col, cell.before, cell.after) for cell in wider.cells] == [(0, "a", "한"), (1, "b", "")]


def test_changes_that_touch_share_a_box_and_others_have_their_own() -> None:
    found = diff("", "███\n██\n\n          █")

    assert [(box.left, box.top, box.right, box.bottom) for box in found.boxes] == [(0, 0, 30, 40), (100, 60, 110, 80)]
    assert found.rows[0].spans == ((0, 3),)
    assert found.pixels_changed == 6 * 200


@pytest.mark.parametrize("shape", ["███\n█ █\n█ █", "███\n█\n███", "█ █\n█ █\n███", "███\n  █\n███"])
def test_a_box_follows_its_cells_in_every_direction(shape: str) -> None:
    assert [(box.left, box.top, box.right, box.bottom) for box in diff("", shape).boxes] == [(0, 0, 30, 60)]


def test_a_moved_cursor_changes_pixels_but_no_cell() -> None:
    found = diff(capture("ab\x1b[1;1H", hide_cursor=False), capture("ab\x1b[1;2H", hide_cursor=False))

    assert found.cells == ()
    assert not found.is_same
    assert found.pixels_changed > 200
    assert found.cursor_before is not None and found.cursor_after is not None
    assert (found.cursor_before.col, found.cursor_after.col) == (0, 1)


def test_the_picture_frames_the_change_and_fades_the_rest() -> None:
    found = diff("████ ████", "████ ███ ")
    image = found.picture.open()

    (box,) = found.boxes
    assert (box.left, box.right) == (80, 90)
    assert image.getpixel((box.left - 2, 10)) == MARK
    faded = image.getpixel((5, 10))
    assert isinstance(faded, tuple) and 50 < faded[0] < 150
    assert image.getpixel((85, 10)) == (0, 0, 0)


def test_captures_of_other_sizes_are_compared_where_either_has_cells() -> None:
    small, large = capture("one\ntwo", 20, 4), capture("one\ntwo\n\n\n\nsix", 30, 6)
    found = diff(small, large)

    assert (found.size_before, found.size_after) == ((20, 4), (30, 6))
    assert [(cell.row, cell.col, cell.after) for cell in found.cells] == [(5, 0, "s"), (5, 1, "i"), (5, 2, "x")]
    assert found.pixels == 300 * 120
    assert (found.picture.width, found.picture.height) == (300, 120)
    back = diff(large, small)
    assert [cell.before for cell in back.cells] == ["s", "i", "x"]
    blank = diff(capture("", 20, 4), capture("", 30, 6))
    assert not blank.cells and not blank.pixels_changed and not blank.is_same


def test_text_that_scrolled_is_told_by_how_many_rows() -> None:
    before = capture("\n".join(f"line {n}" for n in range(8)), 20, 8)
    after = capture("\n".join(f"line {n}" for n in range(3, 11)), 20, 8)

    assert diff(before, after).scrolled == 3
    assert diff(after, before).scrolled == -3
    assert diff(before, before).scrolled == 0
    assert diff("a\nb\nc", "x\ny\nz").scrolled == 0


def test_random_edits_are_found_exactly() -> None:
    chance = random.Random(5)
    for _ in range(15):
        taken = capture("\n".join("".join(chance.choices("abc de", k=20)) for _ in range(4)))
        rows = [list(row.cells) for row in taken.grid.rows]
        edits = set()
        for _ in range(chance.randrange(1, 6)):
            row, col = chance.randrange(4), chance.randrange(20)
            rows[row][col] = replace(rows[row][col], text=chance.choice("XYZ"), bold=True)
            edits.add((row, col))
        grid = replace(
            taken.grid, rows=tuple(replace(taken.grid[n], cells=tuple(cells)) for n, cells in enumerate(rows))
        )
        found = diff(taken, replace(taken, grid=grid))

        assert {(cell.row, cell.col) for cell in found.cells} == edits
        for row, col in edits:
            assert any(
                box.left < col * 10 + 10 and box.right > col * 10 and box.top < row * 20 + 20 and box.bottom > row * 20
                for box in found.boxes
            )


def test_a_stored_capture_is_loaded_as_it_was() -> None:
    text = "한글 😀 é\x1b[1;3;4:3;58:2::1:2:3;31;48;2;9;8;7mstyled\x1b[0m \x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\"
    for engine in ("ghostty", "bittty"):
        taken = capture(text + "\x1b[2;7;8;9;53mx" * 30, hide_cursor=False, engine=engine)
        data = taken.stored()

        assert ScreenCapture.load(data) == taken
        assert len(data) < 2000
        assert visual_diff(taken, ScreenCapture.load(data), painter()).is_same


@pytest.mark.parametrize("name", ["ghostty", "bittty"])
def test_a_capture_of_a_screen_in_reverse_video_is_dark_on_light(name: Literal["ghostty", "bittty"]) -> None:
    engine = make_engine(10, 3, prefer=name)
    engine.feed(b"\x1b[?25lab\r\n\x1b[31mred")
    usual = ScreenCapture.of(engine, "p")
    engine.feed(b"\x1b[?5h")
    reverse = ScreenCapture.of(engine, "p")
    engine.close()

    assert (usual.pane, usual.grid[0].text, usual.grid[1].text) == ("p", "ab", "red")
    assert painter().paint(usual.grid).open().getpixel((99, 59)) == (0, 0, 0)
    assert painter().paint(reverse.grid).open().getpixel((99, 59)) == (229, 229, 229)


@pytest.mark.parametrize("cut", [0, 5, 15, 40])
def test_a_capture_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(InvalidInput):
        ScreenCapture.load(capture("text").stored()[:cut])


def test_bytes_that_are_no_capture_are_refused() -> None:
    good = capture("text").stored()
    for bad in (
        b"",
        b"PNG",
        good[:15] + b"\0" * 50,
        good[:15] + zlib.compress(b"\x90"),
        good[:15] + zlib.compress(b"\xc1"),
    ):
        with pytest.raises(InvalidInput):
            ScreenCapture.load(bad)


def test_damaged_captures_are_refused_and_never_crash() -> None:
    chance, good = random.Random(7), capture("한글 text\x1b[31mred").stored()
    inner = zlib.decompress(good[15:])
    for _ in range(300):
        changed = bytearray(inner)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        try:
            taken = ScreenCapture.load(good[:15] + zlib.compress(bytes(changed)))
        except InvalidInput:
            continue
        if taken.grid.cols * len(taken.grid) < 500:
            painter().paint(taken.grid, taken.cursor)
