"""The runners of outside suites, each tried on files of ours in that suite's form: one case right, one wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.terminal.conformance.suites import alacritty, esctest, libvterm, vt100, xtermjs
from tests.terminal.conformance.suites.suite import Baseline, Case, Result, Suite, baselines


def statuses(suite: Suite, folder: Path) -> dict[str, str]:
    return {case.name: case.status for case in suite.run(suite.find(folder), "ghostty")}


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    for module in (alacritty, esctest, libvterm, vt100, xtermjs):
        assert module.SUITE.find(tmp_path) == []


def test_escape_files_are_compared_row_by_row(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "escape_sequence_files"
    folder.mkdir(parents=True)
    (folder / "t1-right.in").write_bytes(b"one\n\x1b[31mtwo\x1b[0m  \n")
    (folder / "t1-right.text").write_text("one\ntwo\n" + "\n" * 23)
    (folder / "t2-wrong.in").write_bytes(b"one\x1b[2Dx")
    (folder / "t2-wrong.text").write_text("onx\n")
    (folder / "t0504-vim.in").write_bytes(b"left out")
    (folder / "t0504-vim.text").write_text("")
    assert statuses(xtermjs.SUITE, tmp_path) == {"t1-right": "passed", "t2-wrong": "failed"}


def test_alacritty_recordings_are_compared_with_their_grid(tmp_path: Path) -> None:
    def cell(text: str, flags: object = 0, joined: str = "") -> dict[str, object]:
        return {"c": text, "flags": flags, "extra": {"zerowidth": list(joined)} if joined else None}

    wide, tail = cell("한", "WIDE_CHAR"), cell(" ", "WIDE_CHAR_SPACER")
    first = [cell("a"), wide, tail, cell("e", {"bits": 0}, "\u0301")]
    blank = [cell(" ")] * 4
    grid = {"raw": {"inner": [{"inner": blank}, {"inner": first}], "zero": 0, "len": 2}}
    for name, data in (("right", "a한e\u0301"), ("wrong", "a한")):
        folder = tmp_path / "ref" / name
        folder.mkdir(parents=True)
        (folder / "alacritty.recording").write_bytes(data.encode())
        (folder / "size.json").write_text('{"columns": 4, "screen_lines": 2}')
        (folder / "grid.json").write_text(json.dumps(grid))
    assert statuses(alacritty.SUITE, tmp_path) == {"right": "passed", "wrong": "failed"}


def test_vt100_steps_go_on_from_one_another(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "moves"
    folder.mkdir(parents=True)
    steps = [
        (b"a", {"cells": {"0,0": {"contents": "a"}}, "cursor_position": [0, 1]}),
        (
            "한".encode(),
            {
                "cells": {
                    "0,0": {"contents": "a"},
                    "0,1": {"contents": "한", "is_wide": True},
                    "0,2": {"contents": "", "is_wide_continuation": True},
                },
                "cursor_position": [0, 3],
            },
        ),
        (b"\x1b[2;2H", {"cells": {}, "cursor_position": [1, 1]}),
        (b"\x1b[2J", {"cells": {}, "cursor_position": [0, 0]}),
    ]
    for number, (data, expected) in enumerate(steps, 1):
        (folder / f"{number}.typescript").write_bytes(data)
        (folder / f"{number}.json").write_text(json.dumps(expected))
    assert list(statuses(vt100.SUITE, tmp_path).values()) == ["passed", "passed", "failed", "failed"]


SCRIPT = r"""INIT
UTF8 1
WANTSCREEN

!Right
RESET
PUSH "A"."B"x2
  putglyph 0x41 1 0,0
  movecursor 0,3
  ?screen_row 0 = "ABB"
  ?screen_chars 0,1,1,3 = "BB"
  ?screen_text 0,0,1,80 = 0x41,0x42,0x42
  ?cursor = 0,3
PUSH "\e[1;4mC\e[6n"
  output "\e[1;5R"
  ?screen_cell 0,3 = {0x43} width=1 attrs={BU1} fg=rgb(240,240,240) bg=rgb(0,0,0)

!Wrong
$REP 3: PUSH "\r\n"
  ?cursor = 9,9

!Insides
PUSH "\n"
  scrollrect 0..25,0..80 => +1,+0

!Keys
INKEY 0 Up
  output "\e[A"

!Resized
RESIZE 10,30
PUSH "\e[99;99H"
  ?cursor = 9,29
"""


def test_libvterm_scripts_are_understood_as_far_as_they_ask_about_the_screen(tmp_path: Path) -> None:
    (tmp_path / "10own.test").write_text(SCRIPT)
    (tmp_path / "11wide.test").write_text('INIT\n\n!Latin-1\nPUSH "\\xE9"\n  ?screen_row 0 = 0xe9\n')
    assert statuses(libvterm.SUITE, tmp_path) == {
        "10own: Right": "passed",
        "10own: Wrong": "failed",
        "10own: Insides": "skipped",
        "10own: Keys": "skipped",
        "10own: Resized": "passed",
        "11wide: Latin-1": "skipped",
    }


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        (r'"\e[2J"', b"\x1b[2J"),
        (r'"a"x3 . "\n"', b"aaa\n"),
        (r'"\xC3\x81\x{1F600}"', b"\xc3\x81\xf0\x9f\x98\x80"),
        (r'"\"\\\$"', b'"\\$'),
    ],
)
def test_perl_strings_are_read(expression: str, data: bytes) -> None:
    assert libvterm.evaluate(expression) == data


# In the form of esctest2: its options, its questions to the terminal, its log. Written for this test.
PROGRAM = r"""
import argparse, os, re, sys, tty
parser = argparse.ArgumentParser()
for name in ("--expected-terminal", "--max-vt-level", "--xterm-checksum", "--logfile", "--include"):
    parser.add_argument(name)
parser.add_argument("--no-print-logs", action="store_true")
given = parser.parse_args()
tty.setraw(0)

def ask(question, end):
    os.write(1, question)
    answer = b""
    while not answer.endswith(end):
        answer += os.read(0, 1)
    return answer

def size():
    os.write(1, b"\x1b[8;25;80t")
    assert ask(b"\x1b[18t", b"t") == b"\x1b[8;25;80t"
    os.write(1, b"\x1b[8;10;40t")
    assert ask(b"\x1b[18t", b"t") == b"\x1b[8;10;40t"

def checksum():
    os.write(1, b"\x1b[H\x1b[2JAB")
    assert ask(b"\x1b[7;0;1;1;1;1*y", b"\x1b\\") == b"\x1bP7!~0041\x1b\\"
    assert ask(b"\x1b[8;0;1;3;1;3*y", b"\x1b\\") == b"\x1bP8!~0020\x1b\\"

def place():
    assert ask(b"\x1b[3;4H\x1b[6n", b"R") == b"\x1b[1;1R", "somewhere else"

with open(given.logfile, "w") as log:
    for test in (size, checksum, place):
        name = "OwnTests.test_" + test.__name__
        if re.search(given.include, name):
            log.write("Run test: " + name + "\n")
            try:
                test()
                log.write("Passed.\n\n")
            except AssertionError as error:
                log.write("*** TEST " + name + " FAILED:\nTraceback\nAssertionError: " + str(error) + "\n\n")
    log.write("Run test: OwnTests.test_bug\nFails as expected: known\n\n")
    log.write("*** 2 tests passed, 1 known bug, 1 TEST FAILED ***\n")
"""


def test_a_program_in_a_pane_asks_the_terminal_and_its_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "esctest.py").write_text(PROGRAM)
    (tmp_path / "escargs.py").write_text("")
    (tmp_path / "tests" / "own.py").write_text("class OwnTests(object):\n  pass\n")
    cases = list(esctest.SUITE.run(esctest.SUITE.find(tmp_path), "ghostty"))
    assert [(case.name, case.status) for case in cases] == [
        ("OwnTests.test_size", "passed"),
        ("OwnTests.test_checksum", "passed"),
        ("OwnTests.test_place", "failed"),
        ("OwnTests.test_bug", "skipped"),
    ]
    assert cases[2].why == "AssertionError: somewhere else"


def test_a_baseline_may_only_rise() -> None:
    result = Result("x", (Case("a", "passed"), Case("b", "failed"), Case("c", "skipped")))
    assert result.news(Baseline(of=2, least=1)) == []
    assert result.news(Baseline(of=3, least=2)) == ["x: 1 pass, and 2 did"]
    assert result.news(Baseline(of=2, least=1, fails=("b",))) == []
    assert result.news(Baseline(of=2, least=1, fails=("z",))) == ["x: b fails and did not"]
    assert result.news(Baseline(of=1, least=0, fails=("z",))) == []  # newer files have more cases
    assert result.news(None) == ["x has no baseline"]
    assert result.mended(Baseline(of=2, least=0, fails=("a", "b"))) == ["a"]


def test_the_recorded_baselines_add_up() -> None:
    for engine in ("ghostty", "bittty"):
        for name, baseline in baselines(engine).items():  # type: ignore[arg-type]
            assert baseline.files, name
            assert not baseline.fails or baseline.least + len(baseline.fails) == baseline.of, name
    assert baselines("ghostty")["esctest2"].least >= 341
    assert baselines("ghostty")["xterm.js"].least >= 54
