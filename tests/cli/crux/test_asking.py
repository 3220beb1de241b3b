"""What needs a person's approval is asked of the person at the terminal, and of nobody else."""

from __future__ import annotations

from tests.support.crux_command import Crux
from tests.support.terminal_user import person

DOUBTFUL = ("split-pane", "--", "sh", "-c", "eval $WORDS; exec cat")


def test_without_a_terminal_it_is_refused(crux: Crux) -> None:
    said = crux(*DOUBTFUL)
    assert said.code == 1
    assert "approval" in said.err
    assert crux.json("list")["panes"] == []


def test_a_person_agrees_or_not(crux: Crux) -> None:
    with person(*DOUBTFUL) as someone:
        someone.until_text("[y/N]")
        someone.type("n\r")
        assert someone.end() == 1, someone.screen
    assert crux.json("list")["panes"] == []
    with person(*DOUBTFUL) as someone:
        someone.until_text("[y/N]")
        someone.type("y\r")
        assert someone.end() == 0, someone.screen
    assert len(crux.json("list")["panes"]) == 1
