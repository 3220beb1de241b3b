from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dari.terminal.policy.ast import Dialect
from dari.terminal.policy.config import Security
from dari.terminal.policy.line_buffer import LineBuffer
from dari.terminal.policy.policy import Policy
from dari.text.sanitize import escape_and_shorten


def test_a_command_sent_in_pieces_is_judged_whole() -> None:
    line = LineBuffer()
    assert line.add("rm -rf ") is None
    entry = line.add("/\n")
    assert entry is not None and entry.text == "rm -rf /" and entry.is_certain
    assert line.pending == ""


def test_a_paste_of_several_lines_is_one_entry_and_the_rest_stays() -> None:
    line = LineBuffer()
    entry = line.add("\x1b[200~ls\ncat x\nrm y\x1b[201~")
    assert entry is not None and entry.text == "ls\ncat x"
    assert line.pending == "rm y"
    ended = line.press("enter")
    assert ended is not None and ended.text == "rm y"


def test_looking_ahead_remembers_nothing() -> None:
    line = LineBuffer()
    line.add("echo ")
    assert line.peek("x\r") is not None
    assert line.pending == "echo "


@pytest.mark.parametrize("sent", ["\x12rm", "\x1b[A", "\t", "\x19", "\x10"])
def test_editing_that_cannot_be_followed_makes_the_line_uncertain(sent: str) -> None:
    line = LineBuffer()
    line.add("ls" + sent)
    entry = line.add("\r")
    assert entry is not None and not entry.is_certain


def test_keys_that_clear_the_line_make_it_certain_again() -> None:
    line = LineBuffer()
    line.add("rm\x1b[A")
    line.press("C-c")
    entry = line.add("lss\x7f\n")
    assert entry is not None and entry.text == "ls" and entry.is_certain
    line.press("up")
    assert (unsure := line.press("enter")) is not None and not unsure.is_certain


def test_keys_that_clear_nothing_leave_the_line_as_it_is() -> None:
    for keys in ("\x04", "\x01\x15", "\x1b[D\x15"):
        line = LineBuffer()
        line.add("rm x" + keys)
        entry = line.add("\r")
        assert entry is not None and not entry.is_certain
    line = LineBuffer()
    line.add("\x04")
    assert (entry := line.add("ls\r")) is not None and entry.is_certain


def test_an_editor_on_the_line_is_an_enter_that_nobody_can_read() -> None:
    line = LineBuffer()
    line.add("ls\x18")
    entry = line.add("\x05")
    assert entry is not None and not entry.is_certain


def test_output_shows_what_hides_and_keeps_both_ends() -> None:
    cleaned = escape_and_shorten("a\x1b[31m\u202eb\x07\tc\r\n", 1000)
    assert cleaned.text == "a\\x1b[31m<U+202E>b\\x07\tc\n" and not cleaned.is_truncated
    long = escape_and_shorten("start" + "x" * 1000 + "end", 90)
    assert long.is_truncated and long.text.startswith("start") and long.text.endswith("end")
    assert long.left_out_chars == 1008 - 90 and re.search(r"\[… 918 characters left out …\]", long.text)


_POLICY = Policy(Security(allowed_commands=("ls",), allowed_directories=("/work",)))
_WORDS = "$( ${ if then fi do done case esac for in ls rm x= function end begin (( )) <( ;; && || sh -c env -S"
_PIECES = st.sampled_from(
    [*"'\"\\$`(){}[];&|<>#!~*?=^ \n\t", "<<EOF\n", "EOF\n", *(f"{word} " for word in _WORDS.split())]
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(_PIECES, st.text(string.printable, max_size=3)), max_size=25),
    st.sampled_from(["bash", "zsh", "fish", "sh"]),
)
@example(["for <( &)) -S ("], "fish")
@example(["case <("], "fish")
@example(["[[ <("], "fish")
def test_any_text_gets_a_verdict(pieces: list[str], dialect: Dialect) -> None:
    verdict = _POLICY.judge("".join(pieces), "/work", dialect)
    assert verdict.decision in ("allow", "ask", "deny") and verdict.reason


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_unicode_gets_a_verdict(text: str) -> None:
    assert _POLICY.judge(text, "/work").reason


@pytest.mark.parametrize(
    "text", ["(" * 5000, "$(" * 5000, "`" * 4001, "{ " * 5000, "sh -c " * 3000, "eval " * 3000, '"$(' * 3000]
)
def test_deep_nesting_asks_instead_of_crashing(text: str) -> None:
    assert _POLICY.judge(text, "/work").decision == "ask"
