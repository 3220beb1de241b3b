"""A verdict is given after work that grows with the text, or is refused as too much: nobody else waits meanwhile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.terminal.policy_inputs import hard_texts
from dari.terminal.policy.ast import ShellError
from dari.terminal.policy.carriers import MAX_STEPS, MAX_TRIED
from dari.terminal.policy.commands_run import find_commands_run
from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy

POLICIES = {
    "without a file": Policy(Security(), Path("/home/somebody")),
    "with lists": Policy(
        Security(allowed_commands=("ls",), allowed_directories=("/srv",), denied_patterns=("mkfs*", "git push")),
        Path("/home/somebody"),
    ),
}


def lines_run(text: str, policy: Policy) -> int:
    """How many lines of the policy ran for a verdict."""
    count = 0

    def trace(frame: object, event: str, _: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        policy.judge(text, "/srv")
    finally:
        sys.settrace(before)
    return count


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", hard_texts())
@pytest.mark.parametrize("kind", POLICIES)
def test_a_text_of_twice_the_length_takes_about_twice_the_work(kind: str, name: str) -> None:
    policy = POLICIES[kind]
    short, long = (lines_run(hard_texts(size, 20 * size)[name], policy) for size in (100, 200))
    assert long < 3 * short + 2_000, (short, long)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", hard_texts())
def test_the_longest_texts_get_a_verdict_and_no_more_work_than_is_allowed(name: str) -> None:
    text = hard_texts()[name]
    for policy in POLICIES.values():
        verdict = policy.judge(text, "/srv")
        assert verdict.decision in ("allow", "ask", "deny") and verdict.reason
    try:
        assert find_commands_run(text).steps <= MAX_STEPS
    except (ShellError, RecursionError):
        assert policy.judge(text, "/srv").decision == "ask"


def test_what_would_take_too_long_to_read_says_so() -> None:
    for text, limit in (("foo " + "sh " * 3_000, MAX_TRIED), ("foo " + "'a b c d e f g' " * 3_000, MAX_STEPS)):
        verdict = POLICIES["without a file"].judge(text, "/srv")
        assert verdict.decision == "ask" and str(limit) in verdict.reason and verdict.hint
