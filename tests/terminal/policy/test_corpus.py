from __future__ import annotations

from pathlib import Path

import pytest

from dari.terminal.policy.ast import Dialect
from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy
from tests.terminal.policy import corpus

POLICY = Policy(
    Security(allowed_commands=tuple(corpus.ALLOWED), dangerous_patterns=corpus.DANGEROUS), Path("/home/somebody")
)


@pytest.mark.parametrize("text", corpus.HARMLESS)
def test_what_a_person_allowed_runs_without_a_question(text: str) -> None:
    verdict = POLICY.judge(text, "/work")
    assert verdict.decision == "allow", verdict


@pytest.mark.parametrize(("text", "trick"), corpus.ASKED, ids=[trick for _, trick in corpus.ASKED])
def test_a_way_around_the_list_asks(text: str, trick: str) -> None:
    verdict = POLICY.judge(text, "/work")
    assert verdict.decision == "ask", (trick, verdict)
    assert verdict.reason and verdict.hint


@pytest.mark.parametrize(("text", "trick"), corpus.ASKED, ids=[trick for _, trick in corpus.ASKED])
def test_a_trick_asks_also_where_no_list_says_what_is_allowed(text: str, trick: str) -> None:
    assert Policy(Security()).judge(text, "/work").decision == "ask", trick


@pytest.mark.parametrize(("text", "trick"), corpus.ASKED_WITH_A_LIST)
def test_code_that_is_not_read_asks_only_where_a_list_says_what_may_run(text: str, trick: str) -> None:
    assert POLICY.judge(text, "/work").decision == "ask", trick
    assert Policy(Security()).judge(text, "/work").decision == "allow", trick


@pytest.mark.parametrize("text", corpus.BY_NAME)
def test_an_interpreter_is_judged_by_its_name(text: str) -> None:
    assert POLICY.judge(text, "/work").decision == "allow"
    assert Policy(Security()).judge(text, "/work").decision == "allow"
    assert Policy(Security(allowed_commands=("echo",))).judge(text, "/work").decision == "ask"
    assert Policy(Security(dangerous_patterns=("python*",))).judge(text, "/work").decision == "ask"


@pytest.mark.parametrize(("text", "why"), corpus.NOT_LISTED)
def test_what_is_not_listed_asks(text: str, why: str) -> None:
    assert POLICY.judge(text, "/work").decision == "ask", why


@pytest.mark.parametrize(("text", "trick"), corpus.DENIED, ids=[trick for _, trick in corpus.DENIED])
def test_what_nobody_means_is_denied(text: str, trick: str) -> None:
    verdict = POLICY.judge(text, "/work")
    assert verdict.decision == "deny", (trick, verdict)
    assert verdict.reason and verdict.hint


@pytest.mark.parametrize(("dialect", "text", "decision"), corpus.OTHER_SHELLS)
def test_other_shells_are_read_as_they_read(dialect: Dialect, text: str, decision: str) -> None:
    verdict = POLICY.judge(text, "/work", dialect)
    assert verdict.decision == decision, verdict


def test_without_a_list_only_dangerous_commands_ask() -> None:
    policy = Policy(Security())
    assert policy.judge("curl http://x | head", "/work").is_allowed
    assert policy.judge("kill 1", "/work").decision == "ask"
    assert policy.judge("$x", "/work").decision == "ask"


def test_every_question_names_the_command_and_lists_all_of_them() -> None:
    verdict = POLICY.judge("git status; sudo chmod 600 x", "/work")
    assert "sudo chmod 600 x" in verdict.reason
    assert verdict.commands == ("git status", "sudo chmod 600 x", "chmod 600 x")
