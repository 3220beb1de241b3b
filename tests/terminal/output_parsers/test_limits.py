"""Whatever is printed: no error, no endless work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dari.terminal.output_parsers import detect_intent, parse_structured, parser_names
from tests.terminal.output_parsers.hostile import MEGABYTE, WORST, hostile_outputs
from tests.terminal.output_parsers.labelled import all_samples

LINES = sorted({line for sample in all_samples() for line in sample.output.split("\n") if len(line) < 300})
PIECES = st.one_of(
    st.sampled_from(LINES),
    st.text(max_size=40),
    st.text(alphabet="│┃|+-─=: \t[]{}()'\"0aE가\u0301\u200b\x00\x1b\r", max_size=60),
    st.sampled_from(LINES).flatmap(lambda line: st.integers(0, len(line)).map(lambda place: line[place:])),
)
PAGES = st.lists(PIECES, max_size=30).map("\n".join)
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))


@RELAXED
@given(PAGES, st.sampled_from(["", "docker ps", "git status", "pytest", "ls -l", "df -h", "'unclosed"]))
def test_any_text_is_parsed_into_something_that_can_be_sent(text: str, command: str) -> None:
    parsed = parse_structured(text, command=command)
    assert 0 <= parsed.confidence <= 1
    assert msgspec.json.decode(msgspec.json.encode(parsed))["type"] == parsed.type
    last = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    assert all(1 <= first <= end <= last for first, end in parsed.lines)


@RELAXED
@given(PAGES, st.sampled_from(parser_names()))
def test_any_text_can_be_forced_through_any_parser(text: str, name: str) -> None:
    parsed = parse_structured(text, hint=name)
    assert parsed.parser in (name, "text")
    assert msgspec.json.encode(parsed)


@RELAXED
@given(st.text(max_size=80), PAGES, st.one_of(st.none(), st.integers(-64, 255)))
def test_any_output_has_an_intent_that_can_be_sent(command: str, output: str, exit_code: int | None) -> None:
    found = detect_intent(command, output, exit_code)
    assert 0 <= found.confidence <= 1 and msgspec.json.encode(found)
    last = len(output.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    assert all(1 <= item.line <= last for item in found.evidence)


def test_lone_surrogates_and_control_characters_are_shown_and_not_fatal() -> None:
    text = "a\ud800b: \x00\x1b[0m\r\nkey: 값\x85\u2028x\n"
    assert msgspec.json.encode(parse_structured(text))
    assert msgspec.json.encode(detect_intent(text, text, 1))


def test_digits_that_are_no_numbers_are_not_fatal() -> None:
    text = "1 ² 3 a\n1 ² 3 b\n2 4 6 total\n"
    assert parse_structured(text).type == "text"
    assert parse_structured(text, command="wc a b").type == "text"


# A quadratic step takes minutes on 100 kB and hours on a megabyte: the suite's own limit of a minute is the guard.
@pytest.mark.parametrize("name", hostile_outputs())
def test_work_ends_on_any_output(name: str) -> None:
    text = hostile_outputs()[name](MEGABYTE // 10)
    assert parse_structured(text).parser
    assert detect_intent("make", text, 1).intent


@pytest.mark.parametrize("name", WORST)
def test_work_ends_on_a_megabyte(name: str) -> None:
    text = hostile_outputs()[name](MEGABYTE)
    assert parse_structured(text).parser
    assert detect_intent("make", text, 1).intent


@pytest.mark.parametrize(
    "name", ["a table", "pairs", "diagnostics", "marks", "titles", "frames", "narrow tables", "jest details"]
)
def test_twice_the_text_takes_twice_the_steps(name: str) -> None:
    make = hostile_outputs()[name]
    once = count_calls(lambda: parse_structured(make(20_000)))
    twice = count_calls(lambda: parse_structured(make(40_000)))
    assert twice < 2.3 * once, (once, twice)


def count_calls(work: Callable[[], object]) -> int:
    """Calls of functions, Python's and C's, that the work makes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    work()  # imports and caches are filled once
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
