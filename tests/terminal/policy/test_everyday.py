from __future__ import annotations

from pathlib import Path

import pytest

from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy
from tests.terminal.policy.everyday import EVERYDAY

HOME = Path("/home/somebody")
WITHOUT_A_FILE = Policy(Security(), HOME)
OF_THE_DESIGN = Policy(Security(allowed_commands=("ls", "cat", "git *", "cargo *", "npm *")), HOME)


@pytest.mark.parametrize(("text", "usual", "listed"), EVERYDAY, ids=[text.split("\n")[0] for text, _, _ in EVERYDAY])
def test_what_agents_run_gets_the_verdict_that_a_person_expects(text: str, usual: str, listed: str) -> None:
    here = WITHOUT_A_FILE.judge(text, "/work")
    assert here.decision == usual, here
    there = OF_THE_DESIGN.judge(text, "/work")
    assert there.decision == listed, there


def test_an_agent_without_a_file_is_seldom_stopped() -> None:
    allowed = sum(usual == "allow" for _, usual, _ in EVERYDAY)
    assert len(EVERYDAY) >= 150 and allowed / len(EVERYDAY) > 0.7
