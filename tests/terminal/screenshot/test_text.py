"""Characters end up where a person would look for them, in the colours that the program asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PIL import ImageChops

from dari.terminal.engine.grid import PALETTE
from tests.terminal.screenshot.shots import BLACK, WHITE, capture, painter, shoot


def test_a_letter_has_ink_in_its_own_cell_only() -> None:
    shot = shoot("   A")

    assert [shot.ink(col) > 0 for col in range(6)] == [False, False, False, True, False, False]
    assert WHITE in shot.colors(3)


@pytest.mark.parametrize("engine", ["ghostty", "bittty"])
def test_a_hangul_syllable_has_ink_in_both_of_its_cells(engine: str) -> None:
    shot = shoot(capture("a한b", engine=engine))

    assert all(shot.ink(col) for col in range(4))
    assert not shot.ink(4)


@pytest.mark.parametrize("character", ["한", "글", "の", "カ", "漢", "语", "Ａ", "。", "𠮷"])
def test_east_asian_characters_are_drawn_as_themselves(character: str) -> None:
    assert _looks(character) != _missing_look(character)


@pytest.mark.parametrize("character", list("✓✗✘➜❯→⇒●◆★∑√≠⌘⏎…«éÅßñŁЖλשقไक"))
def test_signs_that_programs_print_are_in_some_font(character: str) -> None:
    shot = shoot(character)

    assert shot.ink(0)
    assert _looks(character) != _missing_look(character)


def test_a_character_that_no_font_has_shows_its_code() -> None:
    first, second = shoot("\U00013000"), shoot("\U00013001")

    assert first.ink(0) > 30
    assert first.cell(0).tobytes() != second.cell(0).tobytes()
    assert first.pixel(0, 0) == WHITE


def test_a_composed_and_a_decomposed_letter_look_the_same() -> None:
    assert shoot("é").cell(0).tobytes() == shoot("e\u0301").cell(0).tobytes()


def test_a_mark_is_drawn_above_a_letter_that_has_no_composed_form() -> None:
    plain, marked = shoot("x"), shoot("x\u0302")

    added = ImageChops.difference(plain.cell(0), marked.cell(0)).getbbox()
    letter = plain.cell(0).getbbox()
    assert added is not None and letter is not None
    assert added[3] <= letter[1]


@pytest.mark.parametrize("color_emoji", [True, False])
@pytest.mark.parametrize("emoji", ["😀", "🚀", "❤️", "👍🏽", "👨‍👩‍👧‍👦", "🇰🇷", "1️⃣", "👩🏽‍💻"])
def test_an_emoji_is_one_picture_across_two_cells(emoji: str, color_emoji: bool) -> None:
    shot = shoot(capture(emoji + "|", engine="ghostty"), painter(color_emoji=color_emoji))

    assert shot.ink(0) > 20 and shot.ink(1) > 20
    assert shot.ink(2)  # the bar is right behind it
    assert not shot.ink(3)
    has_hue = any(max(color) - min(color) > 25 for color in shot.colors(0) | shot.colors(1))
    assert has_hue == color_emoji


def test_a_joined_family_is_another_picture_than_its_first_person() -> None:
    family, man = shoot("👨‍👩‍👧‍👦"), shoot("👨")

    assert family.cell(0).tobytes() != man.cell(0).tobytes()


def test_the_selector_chooses_between_sign_and_picture() -> None:
    sign, picture = shoot("☀\ufe0e"), shoot("☀\ufe0f")

    assert sign.cell(0).tobytes() != picture.cell(0).tobytes()
    assert all(max(color) - min(color) < 10 for color in sign.colors(0))


def test_bold_is_heavier_for_letters_and_for_syllables_without_a_bold_face() -> None:
    shot = shoot("n\x1b[1mn\x1b[0m한\x1b[1m한")

    assert shot.weight(1) > shot.weight(0) * 1.15
    assert shot.weight(4) + shot.weight(5) > (shot.weight(2) + shot.weight(3)) * 1.15


def test_italic_leans() -> None:
    shot = shoot("l\x1b[3ml\x1b[0m한\x1b[3m한")

    assert shot.cell(0).tobytes() != shot.cell(1).tobytes()
    assert shot.cell(2).tobytes() != shot.cell(4).tobytes()


def test_colours_of_the_palette_and_true_colours_are_exact() -> None:
    shot = shoot(capture("\x1b[41m \x1b[48;5;123m \x1b[48;2;10;20;30m \x1b[0m\x1b[32m█\x1b[38;2;1;2;3m█"))

    expected = [PALETTE[1], PALETTE[123], (10, 20, 30), PALETTE[2], (1, 2, 3)]
    assert [shot.colors(col) for col in range(5)] == [{color} for color in expected]


def test_inverse_swaps_the_colours_and_dim_goes_towards_the_background() -> None:
    shot = shoot("\x1b[7m \x1b[0;31;7m \x1b[0;2m█\x1b[0m█")

    assert shot.colors(0) == {WHITE}
    assert shot.colors(1) == {PALETTE[1]}
    (dim,), (full,) = shot.colors(2), shot.colors(3)
    assert BLACK < dim < full


def test_what_is_invisible_has_no_ink_but_its_background() -> None:
    shot = shoot("\x1b[8;44mX\x1b[0m")

    assert shot.colors(0) == {PALETTE[4]}


def test_the_program_may_set_the_terminals_own_colours() -> None:
    taken = capture("█ ")
    shot = shoot(replace(taken, grid=replace(taken.grid, foreground=(255, 0, 0), background=(0, 0, 128))))

    assert shot.colors(0) == {(255, 0, 0)}
    assert shot.colors(1) == {(0, 0, 128)}


@pytest.mark.parametrize("kind", [1, 2, 3, 4, 5])
def test_each_underline_is_below_the_text_in_its_own_colour(kind: int) -> None:
    shot = shoot(capture(f"n\x1b[4:{kind};58:2::255:0:0mn\x1b[0m", engine="ghostty"))

    reds = [y for y in range(20) for x in range(10, 20) if shot.pixel(x, y)[0] > 60 and shot.pixel(x, y)[1] == 0]
    assert reds and min(reds) > 14
    assert WHITE in shot.colors(1)


def test_underlines_differ_and_run_on_into_the_next_cell() -> None:
    looks = {shoot(capture(f"\x1b[4:{kind}m  ", engine="ghostty")).cell(0).tobytes() for kind in range(1, 6)}
    assert len(looks) == 5

    single = shoot("\x1b[4m  ")
    rows = [y for y in range(20) if single.pixel(9, y) == WHITE]
    assert rows and all(single.pixel(10, y) == WHITE for y in rows)


def test_a_line_through_and_over_the_text_and_under_a_link() -> None:
    shot = shoot("\x1b[9m \x1b[0;53m \x1b[0m\x1b]8;;https://example.org\x1b\\x\x1b]8;;\x1b\\")

    strike, over, link = ([y for y in range(20) if shot.pixel(col * 10 + 9, y) == WHITE] for col in range(3))
    assert strike and 6 < strike[0] < 14
    assert over == [0]
    assert link and link[0] > 14


def test_a_block_cursor_swaps_the_colours_of_its_cell() -> None:
    shot = shoot(capture("\x1b[32mab\x1b[1;1H", hide_cursor=False))
    plain = shoot("\x1b[32mab")

    background, ink = (max(one.cell(0).getcolors(4096))[1] for one in (shot, plain))
    assert background == PALETTE[2]
    assert ink == BLACK
    assert BLACK in shot.colors(0)
    assert shot.cell(1).tobytes() == plain.cell(1).tobytes()


def test_the_cursor_covers_both_cells_of_a_wide_character() -> None:
    shot = shoot(capture("한\x1b[1;1H", hide_cursor=False))

    assert max(shot.cell(0).getcolors(4096))[1] == WHITE
    assert max(shot.cell(1).getcolors(4096))[1] == WHITE


def test_bar_and_underline_cursors_leave_the_letter_as_it_is() -> None:
    bar = shoot(capture("\x1b[6 q\x1b[31m█\x1b[1;1H", hide_cursor=False))
    line = shoot(capture("\x1b[4 q \x1b[1;1H", hide_cursor=False))

    assert bar.pixel(5, 10) == PALETTE[1]
    assert [line.pixel(5, y) for y in (10, 17, 18, 19)] == [BLACK, BLACK, WHITE, WHITE]
    assert [shoot(capture("\x1b[6 q ", hide_cursor=False)).pixel(x, 10) for x in (10, 11, 12)] == [WHITE, WHITE, BLACK]


def test_a_hidden_cursor_is_not_drawn() -> None:
    assert not shoot(capture("", hide_cursor=True)).image.getbbox()
    assert shoot(capture("", hide_cursor=False)).image.getbbox()


@pytest.mark.parametrize("size", [(6, 12), (8, 16), (12, 24), (20, 40)])
def test_text_fits_cells_of_other_sizes(size: tuple[int, int]) -> None:
    shot = shoot("한|gÅ\U00013000", painter(*size))

    assert all(shot.ink(col) for col in range(6))
    assert not shot.ink(6)


def _looks(character: str) -> bytes:
    return shoot(character).cell(0).tobytes()


def _missing_look(character: str) -> bytes:
    """The code in its frame, drawn over the same cells."""
    from PIL import Image

    from dari.terminal.screenshot.canvas import Canvas
    from dari.terminal.screenshot.shapes import draw_code

    cells = 2 if shoot(character + "|").ink(2) and not shoot(character).ink(2) and shoot(character).ink(1) else 1
    canvas = Canvas(10 * cells, 20)
    draw_code(ord(character), canvas)
    levels = bytes((ink * 15 + 127) // 255 * 229 // 15 for ink in canvas.ink)
    return Image.frombytes("L", (10 * cells, 20), levels).crop((0, 0, 10, 20)).convert("RGB").tobytes()
