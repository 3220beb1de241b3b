"""Our own probes all pass, on both engines; what does not is listed, and the list is true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from dari.terminal.engine.engine import Engine, Form, Modes, restore_engine
from tests.support.screens import ENGINES, both_engines, everything, screen, shown
from tests.terminal.conformance.probes import CATALOGUE, PICTURES, QUESTIONS, SHORTFALLS, Picture, Question
from tests.terminal.engine.test_probes import PROBES


def answers(engine: Engine, asked: str) -> str:
    said: list[bytes] = []
    engine.on_reply = said.append
    engine.feed(asked.encode())
    return b"".join(said).decode("latin-1")


def judge(engine_name: str, probe: Picture | Question, is_right: bool, found: object) -> None:
    if probe.name in SHORTFALLS[engine_name]:
        assert not is_right, f"{probe.name!r} passes now: take it out of SHORTFALLS"
    else:
        assert is_right, found


@both_engines
@pytest.mark.parametrize("probe", PICTURES, ids=[probe.name for probe in PICTURES])
def test_a_sequence_does_what_terminals_do(engine_name: str, probe: Picture) -> None:
    whole, cut = screen(engine_name, probe.raw), screen(engine_name)
    for byte in probe.raw:
        cut.feed(bytes([byte]))
    for engine in (whole, cut):
        found = shown(engine), (engine.cursor.col, engine.cursor.row)
        judge(engine_name, probe, found == (probe.rows, probe.cursor), found)


@both_engines
@pytest.mark.parametrize("probe", QUESTIONS, ids=[probe.name for probe in QUESTIONS])
def test_a_program_is_answered(engine_name: str, probe: Question) -> None:
    found = answers(screen(engine_name, probe.before), probe.asked)
    judge(engine_name, probe, re.fullmatch(probe.answer, found) is not None, found)


@both_engines
def test_a_link_ends_where_it_is_ended(engine_name: str) -> None:
    row = screen(engine_name, "\x1b]8;id=a;http://one\x07ab\x1b]8;;http://two\x1b\\c\x1b]8;;\x1b\\d").grid()[0]
    assert [cell.link for cell in row.cells[:5]] == ["http://one", "http://one", "http://two", "", ""]


@both_engines
def test_each_kind_of_mouse_report_has_its_mode(engine_name: str) -> None:
    for number, tracking in ((9, "x10"), (1000, "normal"), (1002, "button"), (1003, "any")):
        engine = screen(engine_name, f"\x1b[?{number}h\x1b[?1006h")
        assert (engine.modes.mouse, engine.modes.mouse_format) == (tracking, "sgr")
        assert engine.encode_mouse("press", "left", 0, 0)
        assert bool(engine.encode_mouse("move", "left", 1, 1)) == (number >= 1002)
        assert bool(engine.encode_mouse("release", "left", 1, 1)) == (number >= 1000)
        assert bool(engine.encode_mouse("move", "none", 2, 2)) == (number == 1003)
        engine.feed(f"\x1b[?{number}l".encode())
        assert engine.encode_mouse("press", "left", 1, 1) == b""


LINE = "가나다라마바사아자차카타파하$"


@both_engines
@pytest.mark.parametrize("form", ["plain", "vt"])
def test_a_line_of_wide_characters_is_put_together_without_gaps(engine_name: str, form: Form) -> None:
    for cols in (7, 3, 11, 40):
        engine = screen(engine_name, LINE)
        engine.resize(cols, 20)
        assert engine.text(0, 20, form=form, unwrap=True).rstrip("\n") == LINE


def test_wide_characters_and_the_cursor_survive_reflow() -> None:
    """The fallback keeps the gaps of a narrow screen when it is widened again."""
    engine = screen("ghostty", LINE)
    for cols in (7, 3, 11, 40):
        engine.resize(cols, 20)
        assert engine.text(0, 20, unwrap=True).rstrip("\n") == LINE
    assert (engine.cursor.col, engine.cursor.row) == (29, 0)


@both_engines
def test_history_can_be_erased(engine_name: str) -> None:
    engine = screen(engine_name, "".join(f"{number}\r\n" for number in range(30)))
    assert engine.history > 20
    engine.feed(b"\x1b[3J")
    assert engine.history == 0
    assert everything(engine) == ["25", "26", "27", "28", "29"]


@both_engines
def test_synchronized_output_is_told_and_ends(engine_name: str) -> None:
    engine = screen(engine_name, "\x1b[?2026habc")
    assert engine.modes.synchronized
    engine.feed(b"\x1b[?2026l")
    assert not engine.modes.synchronized
    assert shown(engine) == ["abc"]


@both_engines
@pytest.mark.parametrize(
    "wish", ["\x1b[8;50;100t", "\x1b[30t", "\x1b[?40h\x1b[?3h", "\x1b[132$|", "\x1b[40*|", "\x1b[4;999;999t"]
)
def test_a_program_cannot_change_the_size_of_its_screen(engine_name: str, wish: str) -> None:
    engine = screen(engine_name, wish + "x")
    assert (engine.cols, engine.rows) == (20, 6)
    assert {len(row) for row in engine.grid()} == {20}
    assert answers(engine, "\x1b[18t") == "\x1b[8;6;20t"


@both_engines
def test_a_reset_ends_every_mode(engine_name: str) -> None:
    numbers = (1, 5, 6, 66, 1003, 1004, 1006, 1049, 2004, 2026)
    engine = screen(engine_name, "".join(f"\x1b[?{number}h" for number in numbers) + "\x1b[4h\x1b[?7l\x1b[>5u")
    assert engine.modes != Modes()
    engine.feed(b"\x1bc")
    assert engine.modes == Modes()


@pytest.mark.parametrize("data", ["\x1b[3;4r\x1b[!p", "\x1b[1;31mx", "\x1b]2;한글\x1b\\", "가나다", "\x1bP$qm\x1b\\"])
def test_a_snapshot_in_the_middle_of_a_sequence_loses_nothing(data: str) -> None:
    raw = data.encode()
    whole = screen("ghostty", raw + b"end\r\n\n\n\n\n\nlast")
    for cut in range(len(raw)):
        again = restore_engine(screen("ghostty", raw[:cut]).snapshot())
        again.feed(raw[cut:] + b"end\r\n\n\n\n\n\nlast")
        assert (shown(again), again.title, again.grid()) == (shown(whole), whole.title, whole.grid())


def test_the_catalogue_names_tests_that_exist() -> None:
    for subject, tests in CATALOGUE.items():
        for test in tests:
            file, _, name = test.partition("::")
            module = importlib.import_module("tests.terminal." + file.removesuffix(".py").replace("/", "."))
            assert hasattr(module, name), f"{subject}: {test} is gone"


def test_every_probe_has_a_name_of_its_own_and_shortfalls_name_probes() -> None:
    names = [probe[0] for probe in PROBES] + [probe.name for probe in (*PICTURES, *QUESTIONS)]
    assert len(names) == len(set(names))
    assert len(PROBES) >= 47
    assert set(SHORTFALLS) == set(ENGINES)
    for known in SHORTFALLS.values():
        assert known.keys() <= set(names)


def test_the_page_tells_how_many_probes_pass() -> None:
    page = (Path(__file__).parents[3] / "docs" / "terminal-conformance.md").read_text()
    for engine_name, known in SHORTFALLS.items():
        pictures = len(PROBES) + len(PICTURES), sum(probe.name in known for probe in PICTURES)
        questions = len(QUESTIONS), sum(probe.name in known for probe in QUESTIONS)
        told = " | ".join(f"{count - short} of {count}" for count, short in (pictures, questions))
        assert f"| {engine_name} | {told} |" in page
