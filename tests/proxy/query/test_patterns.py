from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.errors import InvalidInput
from dari.proxy.query.patterns import LinearRegex


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)+$", "a" * 5000 + "!"),
        (r"(a|a)*b", "a" * 5000),
        (r"(.*)*x", "a" * 5000),
        (r".*a.*a.*a.*ab", "a" * 5000 + "c"),
        (r"(\w+\s?)*$", "word " * 1000 + "!"),
        (r"(x{1,20}){1,20}y", "x" * 5000),
    ],
)
def test_a_pattern_that_would_stop_re_takes_one_step_per_character(pattern: str, text: str) -> None:
    made = LinearRegex(pattern)
    made.occurs_in(text[:100])  # learns the states
    steps = 0
    step = made._step

    def counted(state: int, character: str) -> int:
        nonlocal steps
        steps += 1
        return step(state, character)

    made._step = counted  # type: ignore[method-assign]
    made.occurs_in(text)
    assert steps < len(text)


@pytest.mark.parametrize(
    ("pattern", "text", "is_there"),
    [
        (r"/users/\d+$", "https://a.test/USERS/42", True),
        (r"/users/\d+$", "https://a.test/users/42/posts", False),
        (r"^https://.*\.test/", "https://a.test/", True),
        (r"^a", "ba", False),
        (r"(login|logout)\?", "/logout?x", True),
        (r"v[12]/.*id=[0-9a-f]{8}\b", "/v2/x?id=deadbeef&y", True),
        (r"v[12]/.*id=[0-9a-f]{8}\b", "/v2/x?id=deadbeef1", False),
        (r"", "anything", True),
        (r"$^", "", True),
        (r"(?:ab){2,}c", "xababababc", True),
        (r"[^a-z]", "abc", False),
    ],
)
def test_patterns_that_people_write_find_what_they_mean(pattern: str, text: str, is_there: bool) -> None:
    assert LinearRegex(pattern).occurs_in(text) is is_there


@pytest.mark.parametrize(
    "pattern",
    ["(", "a**", r"(a)\1", "(?=a)", "(?<!a)b", "(?>a)", "a++", "a{1000}{1000}", "a" * 301, "(?i:a)b(?-i:c)", "(" * 150],
)
def test_what_cannot_be_matched_in_bounded_time_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        LinearRegex(pattern)


atoms = st.sampled_from(["a", "b", "A", ".", r"\w", r"\d", "[ab]", "[^a]", "1", "^", "$", r"\b", r"\B", "-"])
expressions = st.recursive(
    atoms,
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}?", "{2,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        )
    ),
    max_leaves=6,
)


@given(expressions, st.lists(st.text("abAB1-_ é", min_size=1, max_size=8), max_size=5))
def test_it_finds_exactly_what_re_finds(expression: str, texts: list[str]) -> None:
    made = LinearRegex(expression)
    for text in texts:
        assert made.occurs_in(text) == bool(re.search(expression, text, re.IGNORECASE))


def test_what_is_remembered_is_bounded() -> None:
    made = LinearRegex("(a|b)*a(a|b){12}x")
    import random

    text = "".join(random.Random(5).choices("ab", k=20_000))
    assert not made.occurs_in(text) and len(made._states) <= 2000
    assert made.occurs_in(text + "aaaaaaaaaaaaaaaax")
