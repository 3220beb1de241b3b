"""The last words of a child, and text that a terminal may show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.process.stderr_tail import MAX_LINE_BYTES, MAX_TAIL_BYTES, MAX_TAIL_LINES, StderrTail
from dari.text.sanitize import strip_hidden


def test_each_line_has_its_time() -> None:
    now = iter([10.0, 20.0, 30.0])
    tail = StderrTail(clock=lambda: next(now))
    tail.data_received(b"one\ntw")
    tail.data_received(b"o\nthree")
    assert [(line.at, line.text) for line in tail.lines()] == [(10, "one"), (20, "two"), (30, "three")]


def test_only_the_last_lines_are_kept() -> None:
    tail = StderrTail()
    tail.data_received(b"".join(b"%d\n" % n for n in range(1000)))
    kept = [line.text for line in tail.lines()]
    assert kept[-1] == "999" and len(kept) == MAX_TAIL_LINES
    assert tail.dropped_lines == 1000 - MAX_TAIL_LINES


def test_a_flood_without_an_end_of_line_keeps_its_start() -> None:
    tail = StderrTail()
    for _ in range(1000):
        tail.data_received(b"x" * 1000)
    assert tail.text() == "x" * MAX_LINE_BYTES + "…"
    tail.data_received(b"\nnext\n")
    assert tail.text().endswith("…\nnext")


def test_the_whole_is_bounded_in_bytes() -> None:
    tail = StderrTail()
    for _ in range(100):
        tail.data_received(b"y" * 1500 + b"\n")
    assert len(tail.text()) <= MAX_TAIL_BYTES


@given(st.lists(st.binary(max_size=4000), max_size=30))
def test_any_bytes_stay_within_the_bounds(parts: list[bytes]) -> None:
    tail = StderrTail()
    for part in parts:
        tail.data_received(part)
    assert len(tail.lines()) <= MAX_TAIL_LINES + 1
    assert sum(len(line.text) for line in tail.lines()) <= MAX_TAIL_BYTES + 2 * MAX_LINE_BYTES


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x9b31mred", "red"),
        ("\x1bc reset", " reset"),
        ("bell\x07", "bell\ufffd"),
        ("over\rwrite", "over\ufffdwrite"),
        ("lines\r\nstay", "lines\nstay"),
        ("a\tb\nc", "a\tb\nc"),
        ("user\u202etxt.exe", "user\ufffdtxt.exe"),
        ("한국어 é ✓", "한국어 é ✓"),
    ],
)
def test_nothing_that_a_terminal_would_obey_is_left(raw: str, shown: str) -> None:
    assert strip_hidden(raw) == shown


@given(st.text())
def test_no_control_character_gets_through(text: str) -> None:
    assert not any((ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 for c in strip_hidden(text))
