"""`crux approvals`: the word of a person for whoever cannot be asked, and never from inside a pane."""

from __future__ import annotations

import re

from tests.support.crux_command import Crux
from tests.support.terminal_user import person


def test_what_waits_is_listed_approved_and_then_runs_once(crux: Crux) -> None:
    (crux.home / "victim").touch()
    command = f"rm {crux.home}/victim"
    asked = crux("exec", command)
    found = re.search(r"crux approvals approve (\w+)", asked.err)
    assert asked.code == 125 and found is not None
    assert found[1] in crux.ok("approvals") and command in crux.ok("approvals")
    assert "approved" in crux.ok("approvals", "approve", found[1])
    assert crux("exec", command).code == 0
    assert not (crux.home / "victim").exists()
    assert crux.ok("approvals") == "nothing waits for you"
    assert crux.json("approvals")["answered"][0]["state"] == "approved"
    assert crux("exec", command).code == 125


def test_what_was_denied_is_denied(crux: Crux) -> None:
    asked = crux("tmux", "new-session", "-d", "rm -r gone")
    assert asked.code == 1
    (waiting,) = [each for each in crux.json("approvals")["waiting"] if "gone" in each["message"]]
    crux.ok("approvals", "deny", waiting["id"], "not now")
    assert "denied" in crux("tmux", "new-session", "-d", "rm -r gone").err
    assert crux("approvals", "approve", waiting["id"]).code == 1


def test_a_person_who_is_attached_sees_that_something_waits(crux: Crux) -> None:
    def answer_all() -> None:
        for waiting in crux.json("approvals")["waiting"]:
            crux.ok("approvals", "deny", waiting["id"])

    answer_all()
    with person("attach") as someone:
        someone.until_text("$")
        assert "waiting for you" not in someone.status
        crux("exec", "rm -r watched")
        someone.until(lambda: "1 waiting for you: crux approvals" in someone.status)
        answer_all()
        someone.until(lambda: "waiting for you" not in someone.status)
        someone.type("\x02d")
        assert someone.end() == 0
