"""Programs that run other programs: what they run is judged, or asked about where the program is not known."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy
from tests.terminal.policy import runners
from tests.terminal.policy.test_evaluated import BASH, POLICY, leaves_a_mark


@pytest.mark.parametrize(("needs", "text"), runners.RUN, ids=[text for _, text in runners.RUN])
def test_what_a_runner_runs_is_stopped(needs: str, text: str, tmp_path: Path) -> None:
    assert POLICY.judge(text, str(tmp_path)).decision != "allow"
    # That it runs is shown where the program is installed and asks for no password.
    if shutil.which(needs) and (os.geteuid() == 0 or needs not in runners.FOR_ROOT):
        assert leaves_a_mark(BASH, text, tmp_path), "nothing ran; the case proves nothing"


@pytest.mark.parametrize("text", runners.STOPPED)
def test_a_denied_command_among_the_words_of_a_runner_is_stopped(text: str) -> None:
    verdict = POLICY.judge(text, "/work")
    assert verdict.decision != "allow" and verdict.reason and verdict.hint


@pytest.mark.parametrize("text", runners.NOTHING_RUNS)
def test_the_name_of_a_command_as_a_word_is_not_asked_about_where_nothing_runs_it(text: str) -> None:
    verdict = Policy(Security()).judge(text, "/work")
    assert verdict.decision == "allow", verdict
