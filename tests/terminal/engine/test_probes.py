"""What a terminal must do with each kind of sequence, asked of both engines."""

from __future__ import annotations

import pytest

from tests.support.screens import ENGINES, both_engines, screen, shown

Probe = tuple[str, str, list[str], tuple[int, int]]
# name, bytes, rows shown (20×6), cursor (column, row)
PROBES: list[Probe] = [
    ("text", "hello", ["hello"], (5, 0)),
    ("line feed goes down only", "ab\ncd", ["ab", "  cd"], (4, 1)),
    ("return and line feed", "ab\r\ncd", ["ab", "cd"], (2, 1)),
    ("return overwrites", "abc\rx", ["xbc"], (1, 0)),
    ("backspace moves", "abc\b\bx", ["axc"], (2, 0)),
    ("backspace stops at the edge", "\b\bx", ["x"], (1, 0)),
    ("tab stops", "a\tb", ["a       b"], (9, 0)),
    ("wrapping", "x" * 25, ["x" * 20, "x" * 5], (5, 1)),
    ("a full line waits to wrap", "x" * 20, ["x" * 20], (19, 0)),
    ("no wrap without DECAWM", "\x1b[?7l" + "a" * 19 + "bcd", ["a" * 19 + "d"], (19, 0)),
    ("scrolling", "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7", ["2", "3", "4", "5", "6", "7"], (1, 5)),
    ("cursor position", "\x1b[3;5Hx", ["", "", "    x"], (5, 2)),
    ("cursor position is clamped", "\x1b[99;99Hx", ["", "", "", "", "", " " * 19 + "x"], (19, 5)),
    ("cursor up, down, forward, back", "\x1b[3;3H\x1b[A\x1b[2C\x1b[B\x1b[Dx", ["", "", "   x"], (4, 2)),
    ("column and row absolute", "\x1b[5G\x1b[2dx", ["", "    x"], (5, 1)),
    ("next and previous line", "abc\x1b[2Ex\x1b[Fy", ["abc", "y", "x"], (1, 1)),
    ("erase to the end of the line", "abcdef\x1b[3D\x1b[K", ["abc"], (3, 0)),
    ("erase to the start of the line", "abcdef\x1b[3D\x1b[1K", ["    ef"], (3, 0)),
    ("erase the line", "abcdef\x1b[2K", [""], (6, 0)),
    ("erase below", "1\r\n2\r\n3\x1b[2;1H\x1b[J", ["1"], (0, 1)),
    ("erase above", "1\r\n2\r\n3\x1b[2;1H\x1b[1J", ["", "", "3"], (0, 1)),
    ("erase the screen", "1\r\n2\r\n3\x1b[2J", [""], (1, 2)),
    ("insert characters", "abcd\x1b[1;2H\x1b[2@", ["a  bcd"], (1, 0)),
    ("delete characters", "abcdef\x1b[1;2H\x1b[2P", ["adef"], (1, 0)),
    ("erase characters", "abcdef\x1b[1;2H\x1b[2X", ["a  def"], (1, 0)),
    ("insert lines", "1\r\n2\r\n3\x1b[2;1H\x1b[L", ["1", "", "2", "3"], (0, 1)),
    ("delete lines", "1\r\n2\r\n3\x1b[2;1H\x1b[M", ["1", "3"], (0, 1)),
    ("a scroll region", "\x1b[2;4r\x1b[1;1H1\r\n2\r\n3\r\n4\r\n5\r\n6", ["1", "4", "5", "6"], (1, 3)),
    ("scroll up", "1\r\n2\r\n3\x1b[S", ["2", "3"], (1, 2)),
    ("scroll down", "1\r\n2\r\n3\x1b[T", ["", "1", "2", "3"], (1, 2)),
    ("reverse index at the top", "1\r\n2\x1b[H\x1bMx", ["x", "1", "2"], (1, 0)),
    ("index at the bottom", "\x1b[6;1Ha\x1bDb", ["", "", "", "", "a", " b"], (2, 5)),
    ("next line", "ab\x1bEc", ["ab", "c"], (1, 1)),
    ("saved cursor", "ab\x1b7\x1b[5;5Hx\x1b8c", ["abc", "", "", "", "    x"], (3, 0)),
    ("origin mode", "\x1b[2;4r\x1b[?6h\x1b[1;1Hx", ["", "x"], (1, 1)),
    ("insert mode", "abc\x1b[1;1H\x1b[4hxy\x1b[4l", ["xyabc"], (2, 0)),
    ("repeat the last character", "a\x1b[4b", ["aaaaa"], (5, 0)),
    ("line drawing", "\x1b(0lqk\x1b(B", ["┌─┐"], (3, 0)),
    ("reset", "abc\x1b[3;3H\x1bc", [""], (0, 0)),
    ("a wide character takes two columns", "한글x", ["한글x"], (5, 0)),
    ("a wide character is not cut at the edge", "a" * 19 + "한", ["a" * 19, "한"], (2, 1)),
    ("overwriting half of a wide character blanks it", "한\x1b[1;2Hx", [" x"], (2, 0)),
    ("a combining accent joins", "e\u0301x", ["e\u0301x"], (2, 0)),
    ("a family is one character of two columns", "👨‍👩‍👧x", ["👨‍👩‍👧x"], (3, 0)),
    ("a flag is one character of two columns", "🇰🇷x", ["🇰🇷x"], (3, 0)),
    ("skin colour joins", "👍🏽x", ["👍🏽x"], (3, 0)),
    ("emoji style widens", "☀️x", ["☀️x"], (3, 0)),
    ("an unknown OSC shows nothing", "a\x1b]9999;secret\x07b", ["ab"], (2, 0)),
    ("DCS shows nothing", "a\x1bP1$qm\x1b\\b", ["ab"], (2, 0)),
    ("APC, PM and SOS show nothing", "a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", ["abcd"], (4, 0)),
    ("cancelled sequences show nothing", "a\x1b[3\x18b\x1b[4\x1ac", ["abc"], (3, 0)),
    ("an unknown CSI shows nothing", "a\x1b[99zb\x1b[>4;2mc", ["abc"], (3, 0)),
    ("C0 inside a sequence acts at once", "ab\x1b[1\rCx", ["ax"], (2, 0)),
    ("the alternate screen is cleared and left", "main\x1b[?1049hother\x1b[?1049l", ["main"], (4, 0)),
    ("the alternate screen shows its own", "main\x1b[?1049h\x1b[Hother", ["other"], (5, 0)),
]  # fmt: skip


@both_engines
@pytest.mark.parametrize("probe", PROBES, ids=[probe[0] for probe in PROBES])
def test_a_sequence_does_what_terminals_do(
    engine_name: str, probe: tuple[str, str, list[str], tuple[int, int]]
) -> None:
    _, data, rows, place = probe
    engine = screen(engine_name, data)
    assert shown(engine) == rows
    assert (engine.cursor.col, engine.cursor.row) == place


@both_engines
@pytest.mark.parametrize("probe", PROBES, ids=[probe[0] for probe in PROBES])
def test_it_does_the_same_when_it_comes_byte_by_byte(engine_name: str, probe: Probe) -> None:
    _, data, rows, place = probe
    engine = screen(engine_name)
    for byte in data.encode():
        engine.feed(bytes([byte]))
    assert shown(engine) == rows
    assert (engine.cursor.col, engine.cursor.row) == place


def test_there_are_probes_enough() -> None:
    assert len(PROBES) >= 47
    assert len({probe[0] for probe in PROBES}) == len(PROBES)
    assert ENGINES == ("ghostty", "bittty")
