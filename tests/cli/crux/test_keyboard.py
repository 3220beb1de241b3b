"""What a person types, taken apart, however the bytes are cut."""

from __future__ import annotations

import random

import pytest

from dari.cli.crux.view.keyboard import (
    Input,
    Keyboard,
    MouseReport,
    PrefixCommand,
    TypedBytes,
    name_key,
    parse_prefix,
    split_keys,
)
from dari.errors import InvalidInput


def _fed(data: bytes, *cuts: int) -> list[Input]:
    """Fed in pieces; bytes that follow each other are one piece again."""
    keyboard = Keyboard(2)
    found: list[Input] = []
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        found += keyboard.feed(data[start:end])
    found += keyboard.flush()
    joined: list[Input] = []
    for each in found:
        last = joined[-1] if joined else None
        if isinstance(each, TypedBytes) and isinstance(last, TypedBytes):
            joined[-1] = TypedBytes(last.data + each.data)
        else:
            joined.append(each)
    return joined


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"ls\r", [TypedBytes(b"ls\r")]),
        (b"\x1b", [TypedBytes(b"\x1b")]),
        (b"\x1b[A\x1bOB\x1b[15~", [TypedBytes(b"\x1b[A\x1bOB\x1b[15~")]),
        (b"a\x02d", [TypedBytes(b"a"), PrefixCommand("d")]),
        (b"\x02\x1b[A", [PrefixCommand("up")]),
        (b"\x02\x1bOD", [PrefixCommand("left")]),
        (b"\x02\x1b[5~", [PrefixCommand("page_up")]),
        (b"\x02\x1b[1;5A", [PrefixCommand("ctrl-up")]),
        (b"\x02\x1b", [PrefixCommand("escape")]),
        (b"\x02\x02", [TypedBytes(b"\x02")]),
        (b"\x1b[98;5ud", [PrefixCommand("d")]),
        (b"\x1b[97;5u", [TypedBytes(b"\x1b[97;5u")]),
        (b"\x1b[<0;3;4M", [MouseReport("press", "left", 2, 3, ())]),
        (b"\x1b[<2;1;1m", [MouseReport("release", "right", 0, 0, ())]),
        (b"\x1b[<35;10;2M", [MouseReport("move", "none", 9, 1, ())]),
        (b"\x1b[<32;10;2M", [MouseReport("move", "left", 9, 1, ())]),
        (b"\x1b[<80;5;6M", [MouseReport("press", "wheel_up", 4, 5, ("ctrl",))]),
        (b"x\x1b[<65;5;6My", [TypedBytes(b"x"), MouseReport("press", "wheel_down", 4, 5, ()), TypedBytes(b"y")]),
        (b"\x1b[200~a\x02d\x1b[<0;1;1M\x1b[201~b", [TypedBytes(b"\x1b[200~a\x02d\x1b[<0;1;1M\x1b[201~b")]),
        ("한\x02글".encode(), [TypedBytes("한".encode()), PrefixCommand("글")]),
    ],
)
def test_bytes_mean_the_same_wherever_they_are_cut(data: bytes, found: list[Input]) -> None:
    assert _fed(data) == found
    if data != b"\x02\x1b" and not data.startswith("한".encode()):
        for cut in range(1, len(data)):
            assert _fed(data, cut) == found, cut


def test_nothing_that_is_typed_is_lost() -> None:
    chooser = random.Random(5)
    for _ in range(2000):
        data = bytes(chooser.choice(b"ab\x1b[<;0M~2O1u") for _ in range(chooser.randrange(1, 12)))
        typed = b"".join(each.data for each in _fed(data) if isinstance(each, TypedBytes))
        mice = sum(isinstance(each, MouseReport) for each in _fed(data))
        assert typed == data or mice


def test_keys_are_named_one_by_one() -> None:
    data = b"j\x1b[A\x1b[6~\x1b[1;5C\x1b[1;3D\x1b[1;2Aq\x1b"
    names = ["j", "up", "page_down", "ctrl-right", "alt-left", "up", "q", "escape"]
    assert [name_key(key) for key in split_keys(data)] == names
    assert b"".join(split_keys(data)) == data


def test_a_prefix_is_ctrl_and_a_letter() -> None:
    assert (parse_prefix("C-b"), parse_prefix("ctrl-a"), parse_prefix("^q")) == (2, 1, 17)
    for text in ("b", "M-x", "", "C-ab", "Enter"):
        with pytest.raises(InvalidInput):
            parse_prefix(text)


def test_the_end_of_a_paste_that_comes_late_and_in_two_halves_is_its_end() -> None:
    keyboard = Keyboard(2)
    keyboard.feed(b"\x1b[200~text\x1b[20")
    assert not keyboard.is_waiting
    assert keyboard.flush() == []
    assert keyboard.feed(b"1~\x02d") == [TypedBytes(b"\x1b[201~"), PrefixCommand("d")]
