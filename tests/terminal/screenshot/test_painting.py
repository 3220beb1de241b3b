"""Pictures are right PNGs, small ones where they can be, and nothing is drawn twice."""

from __future__ import annotations

import subprocess
import sys
import threading
import zlib
from dataclasses import replace
from io import BytesIO

import pytest
from PIL import Image

from dari.errors import InvalidInput
from dari.terminal.engine.engine import make_engine
from dari.terminal.engine.grid import PALETTE, Cell, Grid, Row
from dari.terminal.screenshot import painter as module
from dari.terminal.screenshot.canvas import Metrics
from dari.terminal.screenshot.painter import Painter
from dari.terminal.screenshot.png import pack_strip, write_png
from tests.terminal.screenshot.shots import capture, painter, shoot

RAINBOW = "".join(f"\x1b[38;2;{n * 3};{255 - n * 3};{n % 7 * 30}m{n % 10}" for n in range(80))


def test_strips_that_were_packed_alone_make_one_right_stream() -> None:
    lines = [[bytes([(x * y + s) % 5 for x in range(64)]) for y in range(1 + s)] for s in range(7)]
    png = write_png(64, 28, [(n, n, n) for n in range(5)], [pack_strip(strip) for strip in lines])

    data, at = b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + size]
        assert int.from_bytes(png[at + 8 + size : at + 12 + size]) == zlib.crc32(kind + body)
        data += body if kind == b"IDAT" else b""
        at += 12 + size
    raw = zlib.decompress(data)  # checks the checksum over all strips
    assert raw == b"".join(b"\0" + line for strip in lines for line in strip)


def test_a_screen_of_few_colours_has_a_palette() -> None:
    picture = painter().paint(capture("\x1b[31mred \x1b[32mgreen").grid)

    assert _mode(picture.png) == "P"
    assert picture.open().size == (200, 80)


def test_a_screen_of_many_colours_has_none_and_the_next_plain_one_has_again() -> None:
    own = Painter()

    modes = [_mode(own.paint(capture(text, 80).grid).png) for text in ("plain", RAINBOW, "plain")]

    assert modes == ["P", "RGB", "P"]


def test_colours_are_the_same_with_and_without_a_palette() -> None:
    text = "\x1b[31mred\x1b[44m on blue\x1b[0m 한글"
    few, many = shoot(capture(text, 80)), shoot(capture(text + "\n" + RAINBOW, 80))

    assert few.image.crop((0, 0, 800, 20)).tobytes() == many.image.crop((0, 0, 800, 20)).tobytes()


def test_between_the_two_shades_of_letters_get_coarser_but_flat_colours_stay_exact() -> None:
    text = "".join(f"\x1b[38;5;{n}mA█" for n in range(20, 50))
    shot = shoot(capture(text, 70), Painter())

    assert _mode(shot.picture.png) == "P"
    assert [shot.colors(2 * at + 1) for at in range(30)] == [{PALETTE[20 + at]} for at in range(30)]


def test_only_the_rows_that_changed_are_drawn_again() -> None:
    own, engine = Painter(), make_engine(40, 10)
    engine.feed(b"\x1b[?25l" + b"\r\n".join(b"line %d" % n for n in range(10)))
    own.paint(engine.grid(), engine.cursor)
    first = own.work.rows_drawn
    own.paint(engine.grid(), engine.cursor)
    assert own.work.rows_drawn == first == 10

    engine.feed(b"\x1b[3;1Hchanged")
    own.paint(engine.grid(), engine.cursor)
    assert own.work.rows_drawn == first + 1

    engine.feed(b"\x1b[10;1H\r\n")  # scrolled: nine rows are where others were
    own.paint(engine.grid(), engine.cursor)
    assert own.work.rows_drawn == first + 2
    engine.close()


def test_equal_cells_that_are_other_objects_are_not_drawn_again() -> None:
    own, grid = Painter(), capture("the same text").grid
    own.paint(grid)
    done = replace(own.work)
    copy = Grid(grid.cols, 0, tuple(Row(tuple(replace(cell) for cell in row)) for row in grid.rows))
    assert copy[0][0] is not grid[0][0]
    own.paint(copy)

    assert (own.work.rows_drawn, own.work.tiles_made) == (done.rows_drawn, done.tiles_made)


def test_an_incremental_picture_is_the_one_a_new_painter_makes() -> None:
    own, engine = Painter(), make_engine(80, 6)
    for text in ("one\r\n한글 😀", "\x1b[2;3Hxyz\x1b[31mred", "\x1b[2J\x1b[1;5H┌─┐", RAINBOW, "\x1b[2J\x1b[H$ "):
        engine.feed(text.encode())
        kept = own.paint(engine.grid(), engine.cursor).open()
        assert kept.tobytes() == Painter().paint(engine.grid(), engine.cursor).open().tobytes()
    engine.close()


def test_a_long_life_with_ever_new_text_keeps_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CACHED_TILES", 200)
    monkeypatch.setattr(module, "_MAX_CACHED_LINES", 20)
    own = Painter()
    for number in range(30):
        cells = [Cell(chr(33 + col), fg=(number, col, row)) for row in range(4) for col in range(20)]
        grid = Grid(20, 0, tuple(Row(tuple(cells[row * 20 : row * 20 + 20])) for row in range(4)))
        first = own.paint(grid)
        drawn = own.work.rows_drawn
        assert own.paint(grid).png == first.png
        assert own.work.rows_drawn == drawn  # also when the tiles have just been given up
        assert len(own._by_value) <= 280
        assert len(own._lines) <= 28


def test_a_half_drawn_row_is_right_after_its_tiles_were_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CACHED_TILES", 1)
    own, plain, rainbow = Painter(), capture("plain 한글", 80).grid, capture("plain 한글\n" + RAINBOW, 80).grid
    for grid in (plain, rainbow, plain, rainbow):
        assert own.paint(grid).open().tobytes() == Painter().paint(grid).open().tobytes()


def test_broken_halves_of_wide_characters_are_drawn_all_the_same() -> None:
    wide, tail = Cell("한", 2), Cell(width=0)
    grid = Grid(4, 0, (Row((tail, wide, Cell("a"), wide)), Row((Cell("b"),))))
    shot = shoot(replace(capture(""), grid=grid))

    assert not shot.ink(0)
    assert shot.ink(1) and shot.ink(2) and shot.ink(3)
    assert shot.ink(0, 1) and not shot.ink(1, 1)


def test_an_empty_grid_and_rows_of_history_can_be_painted() -> None:
    engine = make_engine(10, 3)
    engine.feed(b"\r\n".join(b"row %d" % n for n in range(8)))
    own = painter()
    history = own.paint(engine.grid(-5, 0), engine.cursor)
    assert (history.width, history.height) == (100, 100)
    alone = own.paint(engine.grid(-5, 0))
    assert history.png == alone.png  # the cursor is on the screen, not up there
    engine.close()


def test_several_threads_may_use_one_painter() -> None:
    own, grids = Painter(), [capture(f"thread {n} \x1b[3{n}m한글").grid for n in range(1, 7)]
    alone = [Painter().paint(grid).open().tobytes() for grid in grids]
    seen: dict[int, set[bytes]] = {n: set() for n in range(6)}

    def work(number: int) -> None:
        for _ in range(5):
            seen[number].add(own.paint(grids[number]).open().tobytes())

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [seen[number] for number in range(6)] == [{one} for one in alone]


def test_a_picture_that_would_be_too_large_is_refused() -> None:
    rows = (Row((Cell(),) * 2000),) * 200
    with pytest.raises(InvalidInput, match="pixels"):
        painter(20, 40).paint(Grid(2000, 0, rows))
    with pytest.raises(InvalidInput):
        Metrics(2, 20)


def test_nothing_heavy_is_imported_before_a_picture_is_asked_for() -> None:
    modules = "painter diff fonts glyphs"
    code = "import sys\n" + "\n".join(f"import dari.terminal.screenshot.{one}" for one in modules.split())
    code += "\nprint([one for one in ('PIL', 'numpy', 'pymupdf_fonts', 'lzma') if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)

    assert done.stdout.strip() == "[]"


def _mode(png: bytes) -> str:
    return Image.open(BytesIO(png)).mode
