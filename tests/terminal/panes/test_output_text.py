"""Bytes of programs as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dari.terminal.panes.commands import HEAD_BYTES, TAIL_BYTES, CommandLog, OutputCapture
from dari.terminal.panes.expect import TextWaiter, make_matcher
from dari.terminal.panes.output_text import to_stream, to_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"a\r\nb\r\n", "a\nb"),
        (b"a\tb  \r\n", "a\tb  "),
        (b"\x1b[1;31mred\x1b[m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\r\n", "red link"),
        (b"bell\x07 null\x00 done", "bell null done"),
        (b"10%\r50%\r100%\r\n", "100%"),
        (b"abc\b\b\bxyz\r\n", "xyz"),
        (b"a\x1b[3Cb\r\n", "a   b"),
        (b"one\r\ntwo\x1b[1A\x1b[2K\rONE\r\n", "ONE\ntwo"),
        (b"\x1b[?1049h\x1b[Hfull screen\x1b[?1049lafter\r\n", "after"),
        (b"\x1b(0lqk\x1b(B\r\n", "┌─┐"),
        (b"x" * 500 + b"\r\n", "x" * 500),
        (b"cut \x1b[3", "cut"),
        (b"\xed\x95\x9c \xff\r\n", "한 �"),
        (b"\x1b[2J\x1b[Hcleared\r\n", "cleared"),
    ],
)
def test_output_becomes_what_a_reader_saw(data: bytes, text: str) -> None:
    shown = to_text(data, 80, 24)
    assert shown.rstrip() == text.rstrip()
    assert "\x1b" not in shown


def test_a_long_line_that_is_drawn_comes_back_as_one_line() -> None:
    assert to_text(b"wrapped " * 40 + b"x\by\r\n", 80, 24) == "wrapped " * 40 + "y"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb", "a\nb"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"10%\r20%", "10%\n20%"),
        (b"a\x1b[5;1Hb", "a\nb"),
        (b"a\x1b[4Cb", "a    b"),
        (b"\x1b[2Kx", "x"),
    ],
)
def test_a_stream_is_what_went_by(data: bytes, text: str) -> None:
    assert to_stream(data) == text


def test_very_long_output_keeps_its_beginning_and_its_end() -> None:
    capture = OutputCapture()
    for number in range(400_000):
        capture.add(b"line %d\r\n" % number)
    assert capture.is_truncated
    assert capture.size_bytes <= HEAD_BYTES + TAIL_BYTES + 100
    text = to_text(capture.data, 80, 24)
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 399998\nline 399999")
    assert "left out here" in text


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_match_may_be_cut_anywhere(cut: int) -> None:
    data = b"x \x1b[32m\xed\x95\x9c\xea\xb8\x80 do\x1b[0mne\r\nmore"
    waiter = TextWaiter(make_matcher("한글 done", False))
    first = waiter.feed(data[:cut])
    found = first or waiter.feed(data[cut:])
    assert found is not None
    assert found[0][0] == "한글 done"
    end = found[1] if first else cut + found[1]
    assert data[:end].endswith(b"ne")


def test_words_without_the_secret_or_with_an_old_number_are_not_believed() -> None:
    log = CommandLog("secret")
    size = (80, 24)
    for word in (b"secret;D;1;0;/", b"secret;B"):
        log.hear(word, size)
    assert log.is_ready
    log.send("x", "/", size)
    for word in (
        b"secret;C;7",
        b"wrong;D;2;9;/",
        b"secret;D;1;9;/",
        b"secret;B",
        b"",
        b"secret",
        b"secret;D;x;9;/",
        b"secret;D",
    ):
        log.hear(word, size)
        assert log.current is not None
        assert log.zone == "input"
    log.hear(b"secret;C;1", size)
    assert log.zone == "running"
    log.hear(b"secret;D;2;5;/tmp;with;semicolons", size)
    log.hear(b"secret;B", size)
    assert log.current is None
    assert (log.records[-1].exit_code, log.cwd) == (5, "/tmp;with;semicolons")


@pytest.mark.parametrize("convert", [to_stream, lambda data: to_text(data, 80, 24)])
def test_a_million_returns_before_one_line_end_are_one_line_end(convert: Callable[[bytes], str]) -> None:
    """One pass for each return would be a million passes over a megabyte."""
    assert convert(b"a" + b"\r" * 1_000_000 + b"\nb") == "a\nb"
    assert convert(b"a\r\r\n\r\nb\r\n").rstrip("\n") == "a\n\nb"


@pytest.mark.parametrize("digits", [b"9" * 5000, b"0" * 5000 + b"900", "٩".encode() * 5000])
def test_a_cursor_that_is_moved_by_a_number_of_any_length_leaves_a_bounded_gap(digits: bytes) -> None:
    text = to_stream(b"a\x1b[" + digits + b"Cb")
    assert text.startswith("a")
    assert text.endswith("b")
    assert text.count(" ") <= 500


def test_a_move_by_zero_columns_is_one_by_one_as_in_a_terminal() -> None:
    assert to_stream(b"a\x1b[0Cb\x1b[00012Cc") == "a b" + " " * 12 + "c"
