"""Modifiers of formats on values that somebody else chose."""

from __future__ import annotations

from dari.terminal.tmux.modifiers import Modifier, apply_after, match

SLOW = "(x+x+)+y"
TEXT = "x" * 5000


def test_a_pattern_that_would_not_end_matches_nothing() -> None:
    assert match(("r",), SLOW, TEXT) is False
    assert match(("r",), "x+$", TEXT) is True


def test_a_substitution_that_would_not_end_leaves_the_value() -> None:
    assert apply_after(TEXT, [Modifier("s", (SLOW, "z"))], str) == TEXT
    assert apply_after("one two", [Modifier("s", ("(T)W", "\\1-", "i"))], str) == "one t-o"


def test_what_is_not_a_regular_expression_matches_nothing_and_replaces_nothing() -> None:
    assert match(("r",), "(", "(") is False
    assert apply_after("(", [Modifier("s", ("(", "z"))], str) == "("
