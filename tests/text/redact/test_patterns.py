from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.text.redact import is_surely_clean
from dari.text.redact.patterns import MARK, SECRET_PATTERNS, hide_patterns, may_match_pattern

AFTER = re.compile(r"\(\?<=((?:\\.|[^)\\])*)\)")


def samples(pattern: str) -> st.SearchStrategy[str]:
    """Texts that the pattern finds something in; what it wants before the secret is put there."""
    literal = AFTER.match(pattern)
    before = re.sub(r"\\(.)", r"\1", literal[1]) if literal else ""
    ahead = "@" if pattern.endswith("(?=@)") else ""
    free = re.sub(r"\(\?[<]?[=!](?:[^()\\\[]|\\.|\[(?:[^\]\\]|\\.)*\])*\)", "", pattern)
    matching = st.from_regex(re.compile(free, re.DOTALL | re.ASCII), fullmatch=True)
    found = re.compile(pattern, re.DOTALL)
    return matching.map(lambda text: before + text + ahead).filter(lambda text: found.search(text) is not None)


@pytest.mark.parametrize("pattern", [pattern for _, pattern in SECRET_PATTERNS])
def test_the_quick_look_sees_every_secret_that_a_pattern_finds(pattern: str) -> None:
    @given(samples(pattern))
    @settings(deadline=None, max_examples=20, database=None)
    def check(text: str) -> None:
        assert may_match_pattern(text), text
        assert MARK in hide_patterns(text)[0]
        assert not is_surely_clean(text), text

    check()


@pytest.mark.parametrize("text", ["4111 1111 1111 1111", "4111111111111111", "900101-1234567"])
def test_the_quick_look_sees_numbers_of_cards_and_residents(text: str) -> None:
    assert may_match_pattern(text) and not is_surely_clean(text)


@pytest.mark.parametrize("text", ["both paths in the right light", "src/dari/text/names.py", "the single highlight"])
def test_everyday_words_need_no_long_look(text: str) -> None:
    assert is_surely_clean(text)
