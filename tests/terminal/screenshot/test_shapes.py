"""Lines and blocks meet at the borders of their cells: a pixel of ink on one side has one on the other."""

from __future__ import annotations

import unicodedata

import pytest

from dari.terminal.screenshot.canvas import Canvas
from dari.terminal.screenshot.shapes import draw_shape, read_arms
from tests.terminal.screenshot.shots import BLACK, WHITE, painter, shoot

SIZES = [(10, 20), (9, 18), (7, 15), (13, 27), (24, 48)]
LINES = [
    chr(code)
    for code in range(0x2500, 0x2580)
    if "DASH" not in unicodedata.name(chr(code)) and "DIAGONAL" not in unicodedata.name(chr(code))
]


def drawn(character: str, width: int = 10, height: int = 20, stroke: int = 1) -> Canvas:
    canvas = Canvas(width, height)
    assert draw_shape(character, canvas, stroke)
    return canvas


def border(canvas: Canvas, side: str) -> list[int]:
    width, height, ink = canvas.width, canvas.height, canvas.ink
    if side in ("left", "right"):
        x = 0 if side == "left" else width - 1
        return [y for y in range(height) if ink[y * width + x] == 255]
    y = 0 if side == "up" else height - 1
    return [x for x in range(width) if ink[y * width + x] == 255]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("character", LINES)
def test_every_arm_reaches_its_border_where_a_line_of_its_weight_does(character: str, size: tuple[int, int]) -> None:
    stroke = max(1, round(min(size[0] * 2, size[1]) / 16))
    name = unicodedata.name(character).removeprefix("BOX DRAWINGS ").replace("ARC ", "")
    arms = read_arms(name)
    canvas = drawn(character, *size, stroke)
    straight = {
        ("left", "light"): "─", ("left", "heavy"): "━", ("left", "double"): "═",
        ("up", "light"): "│", ("up", "heavy"): "┃", ("up", "double"): "║",
    }  # fmt: skip
    for side in ("left", "right", "up", "down"):
        if side in arms:
            along = "left" if side in ("left", "right") else "up"
            other = drawn(straight[along, arms[side]], *size, stroke)
            assert border(canvas, side) == border(other, side), side
        else:
            assert border(canvas, side) == [], side


@pytest.mark.parametrize("character", LINES)
def test_the_arms_of_a_box_character_are_one_figure(character: str) -> None:
    """No piece hangs loose, except that a double line has two sides."""
    canvas = drawn(character)
    pieces = _pieces(canvas)
    arms = read_arms(unicodedata.name(character).removeprefix("BOX DRAWINGS ").replace("ARC ", ""))
    most = 1
    if "double" in arms.values():
        doubles = [side for side in arms if arms[side] == "double"]
        most = 4 if len(doubles) == 4 else 3 if len(doubles) == 3 else 2
    assert 1 <= pieces <= most


@pytest.mark.parametrize(
    ("character", "lines"),
    [
        ("╬", ".#.#. ##.## ..... ##.## .#.#."),
        ("╔", "..... .#### .#... .#.## .#.#."),
        ("╟", ".#.#. .#.#. .#.## .#.#. .#.#."),
        ("╢", ".#.#. .#.#. ##.#. .#.#. .#.#."),
        ("╤", "..... ##### ..... ##### ..#.."),
        ("╧", "..#.. ##### ..... ##### ....."),
        ("╫", ".#.#. .#.#. ##### .#.#. .#.#."),
        ("╪", "..#.. ##### ..#.. ##### ..#.."),
        ("╒", "..... ..### ..#.. ..### ..#.."),
        ("╖", "..... ..... ####. .#.#. .#.#."),
        ("╨", ".#.#. .#.#. ##### ..... ....."),
        ("╞", "..#.. ..### ..#.. ..### ..#.."),
        ("╃", ".###. ####. ##### ####. ..#.."),
        ("┳", "..... ##### ##### ##### .###."),
        ("╼", "..... ..### ##### ..### ....."),
    ],
)
def test_double_and_heavy_lines_join_as_they_are_printed(character: str, lines: str) -> None:
    canvas = drawn(character, 5, 5)

    assert ["".join(".#"[ink == 255] for ink in canvas.ink[at : at + 5]) for at in range(0, 25, 5)] == lines.split()


def test_a_frame_on_the_screen_has_no_gap() -> None:
    shot = shoot("┌──┐\n│  │\n└──┘")

    assert all(shot.pixel(x, 9) == WHITE for x in range(4, 35))
    assert all(shot.pixel(x, 49) == WHITE for x in range(4, 35))
    assert all(shot.pixel(4, y) == WHITE for y in range(9, 50))
    assert all(shot.pixel(34, y) == WHITE for y in range(9, 50))
    assert shot.pixel(3, 9) == BLACK and shot.pixel(4, 8) == BLACK


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("one", "other"),
    [("▀", "▄"), ("▌", "▐"), ("▘", "▟"), ("▝", "▙"), ("▖", "▜"), ("▗", "▛"), ("▚", "▞"), ("\U0001fb00", "\U0001fb3b")],
)
def test_a_block_and_the_rest_of_its_cell_make_a_full_one(one: str, other: str, size: tuple[int, int]) -> None:
    first, second = drawn(one, *size).ink, drawn(other, *size).ink

    assert any(first) and any(second)
    assert all(a + b == 255 for a, b in zip(first, second, strict=True))


def test_blocks_of_eighths_grow_one_by_one() -> None:
    up = [sum(map(bool, drawn(chr(0x2580 + eighths)).ink)) for eighths in range(1, 9)]
    right = [sum(map(bool, drawn(chr(0x2590 - eighths)).ink)) for eighths in range(1, 9)]

    assert up == sorted(set(up)) and up[-1] == 200
    assert right == sorted(set(right)) and right[-1] == 200


def test_shades_are_flat_and_darker_to_lighter() -> None:
    inks = [set(drawn(character).ink) for character in "░▒▓█"]

    assert all(len(ink) == 1 for ink in inks)
    values = [ink.pop() for ink in inks]
    assert values == sorted(values) and values[-1] == 255


@pytest.mark.parametrize("code", range(0x1FB00, 0x1FB3C))
def test_a_sextant_has_the_parts_that_its_name_counts(code: int) -> None:
    parts = unicodedata.name(chr(code)).removeprefix("BLOCK SEXTANT-")
    canvas = drawn(chr(code), 10, 21)

    centres = {
        str(2 * row + column + 1): (7 * row + 3) * 10 + 5 * column + 2 for row in range(3) for column in range(2)
    }
    assert {part for part, at in centres.items() if canvas.ink[at]} == set(parts)


def test_all_256_braille_patterns_have_as_many_dots_as_bits() -> None:
    for code in range(256):
        assert _pieces(drawn(chr(0x2800 + code), 12, 24)) == code.bit_count()


def test_a_powerline_arrow_is_full_at_one_border_and_a_point_at_the_other() -> None:
    right, left = drawn("\ue0b0"), drawn("\ue0b2")

    assert len([y for y in range(20) if right.ink[y * 10] > 0]) == 20
    assert len([y for y in range(20) if right.ink[y * 10 + 9] > 128]) <= 2
    assert all(right.ink[y * 10 + x] == left.ink[y * 10 + 9 - x] for y in range(20) for x in range(10))


def test_all_separators_differ_and_none_is_blank() -> None:
    looks = {bytes(drawn(chr(code)).ink) for code in range(0xE0B0, 0xE0C0)}

    assert bytes(200) not in looks
    assert len(looks) == 14  # the two falling and the two rising slants are alike


def test_two_colours_of_a_powerline_prompt_meet_without_a_seam() -> None:
    shot = shoot("\x1b[44m \x1b[34;42m\ue0b0\x1b[0m", painter())

    assert shot.pixel(9, 10) == shot.pixel(10, 10)
    assert shot.pixel(19, 0) != shot.pixel(10, 10)


def _pieces(canvas: Canvas) -> int:
    """Figures of ink that do not touch, corners included."""
    left = {at for at, ink in enumerate(canvas.ink) if ink >= 64}
    count = 0
    while left:
        count += 1
        edge = [left.pop()]
        while edge:
            y, x = divmod(edge.pop(), canvas.width)
            for row in (y - 1, y, y + 1):
                for col in (x - 1, x, x + 1):
                    if 0 <= col < canvas.width and row * canvas.width + col in left:
                        left.remove(row * canvas.width + col)
                        edge.append(row * canvas.width + col)
    return count
