"""Patterns of strangers: the syntax of `re`, bounded time, nothing that `regex` adds."""

from __future__ import annotations

import asyncio
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.errors import InvalidInput
from dari.text.regex import MAX_PATTERN_CHARS, GuardedRegex, PatternTooSlow

HOSTILE = [
    (r"(x+x+)+[yz]", "x" * 1000),
    (r"(a|a)*$", "a" * 60 + "b"),
    (r"(\w+\s?)*$", "word " * 5000 + "!"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 1000),
    (r"(?:a{1,1000}){1,1000}[bc]", "a" * 2000),
    ("a?" * 340 + "a" * 340 + "[bc]", "a" * 679),
    (r"(?i)(ß|ss)+$", "ß" * 100_000 + "x"),
]


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_a_hostile_pattern_is_stopped_after_its_limit(pattern: str, text: str) -> None:
    guarded = GuardedRegex(pattern, search_s=0.05)
    with pytest.raises(PatternTooSlow) as caught:  # unguarded, each takes minutes at least
        guarded.search(text)
    assert caught.value.name == "invalid_input" and repr(pattern) in caught.value.message


def test_a_stopped_search_leaves_the_pattern_usable() -> None:
    guarded = GuardedRegex(r"(x+x+)+y", search_s=0.02)
    with pytest.raises(PatternTooSlow):
        guarded.search("y" + "x" * 1000)
    found = guarded.search("xxy")
    assert found is not None and found[0] == "xxy"


async def _stopped(guarded: GuardedRegex) -> None:
    with pytest.raises(PatternTooSlow):
        guarded.search("x" * 1000)


def test_an_event_loop_goes_on_after_a_hostile_search() -> None:
    async def main() -> bool:
        await _stopped(GuardedRegex(r"(x+x+)+[yz]", search_s=0.02))
        return await asyncio.to_thread(lambda: GuardedRegex("ab").search("cab") is not None)

    assert asyncio.run(main())


def test_threads_share_one_pattern() -> None:
    guarded = GuardedRegex(r"(x+x+)+[yz]", search_s=0.02)
    stopped: list[str] = []

    def search() -> None:
        try:
            guarded.search("x" * 1000)
        except PatternTooSlow as error:
            stopped.append(error.name)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert stopped == ["invalid_input"] * 4


def test_many_searches_share_a_budget() -> None:
    guarded = GuardedRegex(r"(x+x+)+[yz]", search_s=0.01, total_s=0.03)
    for _ in range(100):
        with pytest.raises(PatternTooSlow):
            guarded.search("x" * 1000)
    with pytest.raises(PatternTooSlow):
        guarded.search("xxy")


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "(?P<1>a)", r"\p{L}", "(?R)", "a{2,1}", "(" * 2000, r"\L<x>"])
def test_what_re_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        GuardedRegex(pattern, max_chars=5000)


def test_a_long_pattern_is_refused() -> None:
    GuardedRegex("a" * MAX_PATTERN_CHARS)
    with pytest.raises(InvalidInput):
        GuardedRegex("a" * (MAX_PATTERN_CHARS + 1))


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"/users/{i}", "/users/7", None),
        (r"/users/{i}", "/users/{i}", "/users/{i}"),
        (r"(?:foo){e<=1}", "fo", None),
        (r"\{id\}", "/{id}", "{id}"),
        (r"a{2}b{1,}c{,2}", "aabbc", "aabbc"),
        (r"[{}]+", "x{}", "{}"),
        (r"\N{DIGIT ONE}+", "211", "11"),
        (r"a{}b", "a{}b", "a{}b"),
        (r"(?i)ABC", "xabc", "abc"),
        (r"^b", "a\nb", None),
    ],
)
def test_braces_and_sets_mean_what_they_mean_to_re(pattern: str, text: str, found: str | None) -> None:
    match = GuardedRegex(pattern).search(text)
    plain = re.compile(pattern).search(text)
    assert (match and match[0]) == found == (plain and plain[0])


def test_flags() -> None:
    assert GuardedRegex("ABC", ignore_case=True).search("xabc") is not None
    match = GuardedRegex("^b$", multiline=True).search("a\nb\nc")
    assert match is not None and match.span() == (2, 3)


@given(st.text("ab.*+?|()[]{},1 \\^$", max_size=12), st.text("ab1 {},", max_size=20))
def test_every_pattern_finds_what_re_finds(pattern: str, text: str) -> None:
    try:
        plain = re.compile(pattern).search(text)
    except (re.error, FutureWarning, DeprecationWarning):
        return
    match = GuardedRegex(pattern).search(text)
    assert (match and match.span()) == (plain and plain.span())


def test_a_template_is_checked_before_it_is_used() -> None:
    guarded = GuardedRegex(r"/(?P<a>\w+)/(\d)?")
    guarded.check_template(r"/\g<a>/\2")
    found = guarded.search("/x/")
    assert found is not None and found.expand(r"/\g<a>/\2") == "/x/"
    for wrong in (r"\3", r"\g<b>", "\\"):
        with pytest.raises(InvalidInput):
            guarded.check_template(wrong)
