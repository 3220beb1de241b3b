from __future__ import annotations

import argparse

import pytest

from dari.cli.kit.parser import HELP_COLUMNS, HelpRequested, Parser, count_between, format_examples, milliseconds
from dari.cli.kit.program import nonnegative
from dari.errors import InvalidInput


def make_parser() -> Parser:
    parser = Parser(prog="prog list")
    parser.add_argument("--server")
    parser.add_argument("--kind", choices=("stdio", "http"))
    parser.add_argument("-n", "--count", type=int)
    parser.add_argument("--share", type=float)
    parser.add_argument("--rounded", type=lambda text: int(float(text)))
    parser.add_argument("--idle", type=nonnegative)
    parser.add_argument("--timeout", type=milliseconds)
    below = parser.add_subparsers(metavar="COMMAND")
    below.add_parser("one").add_argument("--deep")
    return parser


@pytest.mark.parametrize(
    "words, hint",
    [
        (["--sever=x"], "did you mean --server? see: prog list --help"),
        (["--kind", "stdoi"], "did you mean stdio? see: prog list --help"),
        (["--server"], "a value that begins with a dash is given as --server=VALUE; see: prog list --help"),
        (["one", "--zzz"], "see: prog list one --help"),
        (["one", "--depe", "1"], "did you mean --deep? see: prog list one --help"),
    ],
)
def test_a_wrong_word_is_an_error_whose_hint_names_the_program(words: list[str], hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_parser().parse_args(words)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    "words, fact",
    [
        (["--sever=x"], "unknown option '--sever'"),
        (["--kind", "stdoi"], "--kind must be one of stdio, http, got 'stdoi'"),
        (["--server"], "--server needs a value"),
        (["--count", "x"], "--count must be a whole number, got 'x'"),
        (["--count", "9" * 5000], f"--count must be a whole number, got '{'9' * 60}…'"),
        (["--rounded", "inf"], "--rounded must be as the help says, got 'inf'"),
        (["--share", "nan"], "--share must be a number, got 'nan'"),
        (["--idle", "-1"], "--idle must be a number, 0 or more, got '-1'"),
        (["--share", "much"], "--share must be a number, got 'much'"),
        (["--timeout", "0"], "--timeout must be a number of milliseconds above 0, such as 30000; got '0'"),
        (["two"], "COMMAND must be one of one, got 'two'"),
        (["one", "more"], "unexpected argument 'more'"),
    ],
)
def test_a_wrong_word_states_the_requirement_and_then_what_was_given(words: list[str], fact: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_parser().parse_args(words)
    assert caught.value.message == fact


@pytest.mark.parametrize(
    "words, fact",
    [([], "prog needs one of make, drop"), (["make"], "NAME is missing"), (["drop"], "--title is missing")],
)
def test_a_missing_word_is_named_with_what_may_stand_there(words: list[str], fact: str) -> None:
    parser = Parser(prog="prog")
    below = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    below.add_parser("make").add_argument("name", metavar="NAME")
    below.add_parser("drop").add_argument("--title", required=True)
    with pytest.raises(InvalidInput) as caught:
        parser.parse_args(words)
    assert caught.value.message == fact


def test_help_is_raised_as_wide_as_the_screen() -> None:
    token = HELP_COLUMNS.set(44)
    try:
        with pytest.raises(HelpRequested) as caught:
            make_parser().parse_args(["--help"])
    finally:
        HELP_COLUMNS.reset(token)
    assert caught.value.text.startswith("usage: prog list")
    assert max(map(len, caught.value.text.splitlines())) <= 44


def test_an_option_is_never_taken_by_its_first_letters() -> None:
    with pytest.raises(InvalidInput):
        make_parser().parse_args(["--serv", "x"])


def test_examples_name_the_program_and_end_with_the_footer() -> None:
    text = format_examples("crewx mcp remote", (("servers", "a table"),), "exit codes: 0")
    assert text == "examples:\n  crewx mcp remote servers\n      a table\n\nexit codes: 0"


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1.5"])
def test_a_number_of_milliseconds_is_whole_and_above_0(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        milliseconds(text)
    assert milliseconds("30000") == 30000


def test_a_count_has_limits() -> None:
    parse = count_between(1, 64)
    assert (parse("1"), parse("64")) == (1, 64)
    for wrong in ("0", "65", "-1", "x", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            parse(wrong)
