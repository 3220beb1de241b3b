from __future__ import annotations

import argparse

import pytest

from dari.cli.kit.parser import HELP_COLUMNS, HelpRequested, Parser, count_between, format_examples, milliseconds
from dari.errors import InvalidInput


def make_parser() -> Parser:
    parser = Parser(prog="prog list")
    parser.add_argument("--server")
    parser.add_argument("--kind", choices=("stdio", "http"))
    below = parser.add_subparsers()
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
