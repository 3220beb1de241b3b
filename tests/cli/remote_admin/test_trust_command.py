"""`trust` and `distrust`: a project's file runs nothing until a person has looked at it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.remote_user import Person, put

SERVERS = (
    {
        "id": "build",
        "command": "bash",
        "args": ["-c", "make it", "--token", "hunter22"],
        "env": {"API_KEY": "hunter22", "LEVEL": "1"},
        "inheritEnv": ["SSH_AUTH_SOCK"],
        "allowedPaths": ["/srv/data"],
        "network": "none",
    },
    {"id": "bare", "command": "run-me"},
    {"id": "prod", "url": "https://user:hunter22@mcp.example.com/mcp?k=hunter22", "headers": {"X-Key": "hunter22"}},
)


@pytest.fixture
def theirs(person: Person) -> Person:
    person.write(*SERVERS, path=person.project_file, mode=0o644)
    return person


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def states(person: Person) -> set[str]:
    async with person.bridge() as bridge:
        return {one.state for one in bridge.view(person.around()).catalog().listed}


async def test_what_it_would_run_and_reach_is_shown_and_a_yes_pins_it(theirs: Person) -> None:
    answer = await theirs.run("trust", answers=("y",))
    assert answer.code == 0 and answer.asked == ("let it run this? [y/N] ",)
    shown = answer.out
    assert digest(theirs.project_file) in shown and "not trusted: nothing of it runs" in shown
    for told in (
        "build: bash -c 'make it'",
        "sets: API_KEY, LEVEL",
        "gets your: SSH_AUTH_SOCK",
        "files: /srv/data (rw)",
        "network: none",
        "bare: run-me",
        "sandbox: none: it may do what you may do",
        "https://mcp.example.com/mcp",
        "sends X-Key",
    ):
        assert told in shown
    assert "hunter22" not in shown
    assert await states(theirs) == {"ready"}
    (decision,) = theirs.decisions()
    assert decision["event"] == "trusted" and decision["sha256"] == digest(theirs.project_file) and decision["who"]


@pytest.mark.parametrize("said", ["", "n"])
async def test_without_a_yes_nothing_runs(said: str, theirs: Person) -> None:
    answer = await theirs.run("trust", answers=(said,))
    assert answer.code == 4 and "nothing of it runs" in answer.err
    assert await states(theirs) == {"untrusted"} and theirs.decisions() == []


async def test_without_a_terminal_the_hash_is_the_yes(theirs: Person) -> None:
    refused = await theirs.run("trust")
    right = digest(theirs.project_file)
    assert refused.code == 1 and f"--sha256 {right}" in refused.err
    wrong = await theirs.run("trust", "--sha256", "0" * 64)
    assert wrong.code == 1 and "has changed since it was shown" in wrong.err
    assert await states(theirs) == {"untrusted"}
    assert (await theirs.run("trust", "--sha256", right.upper())).code == 0
    assert await states(theirs) == {"ready"}
    assert "trusted already" in (await theirs.run("trust")).out


async def test_after_a_change_the_differences_are_shown_and_it_has_to_be_trusted_again(theirs: Person) -> None:
    assert (await theirs.run("trust", "--yes")).code == 0
    changed = [{**SERVERS[0], "command": "curl"}, *SERVERS[1:], {"id": "more", "command": "nc"}]
    theirs.write(*changed, path=theirs.project_file, mode=0o644)
    assert await states(theirs) == {"untrusted"}
    answer = await theirs.run("trust", answers=("y",))
    assert "changed since it was trusted" in answer.out
    assert "~ build: command bash → curl" in answer.out and "+ more: new, nc" in answer.out
    assert await states(theirs) == {"ready"}


async def test_what_was_shown_is_what_is_pinned(theirs: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.remote_user import Screen

    async def ask_and_change(screen: Screen, prompt: str, *, secret: bool = False) -> str:
        theirs.write({"id": "build", "command": "evil"}, path=theirs.project_file, mode=0o644)
        return "y"

    monkeypatch.setattr(Screen, "ask", ask_and_change)
    answer = await theirs.run("trust", answers=("never read",))
    assert answer.code == 1 and "has changed since it was shown" in answer.err
    assert await states(theirs) == {"untrusted"}


async def test_json_shows_it_to_a_script_and_pins_nothing(theirs: Person) -> None:
    answer = await theirs.run("trust", "--json")
    assert answer.code == 0 and answer.json["state"] == "unknown"
    assert answer.json["sha256"] == digest(theirs.project_file)
    assert [one["id"] for one in answer.json["servers"]] == ["build", "bare", "prod"]
    assert answer.json["servers"][0]["env"] == ["API_KEY", "LEVEL"] and "hunter22" not in answer.out
    assert await states(theirs) == {"untrusted"}
    agreed = await theirs.run("trust", "--json", "--yes")
    assert agreed.json["state"] == "trusted" and await states(theirs) == {"ready"}


async def test_a_file_that_is_named_is_seen_from_where_the_person_is(person: Person) -> None:
    put(person.cwd / "sub/.crewx/mcp.json", {"servers": [{"id": "a", "command": "x"}]})
    answer = await person.run("trust", "sub/.crewx/mcp.json", "--yes")
    assert answer.code == 0 and str(person.cwd / "sub/.crewx/mcp.json") in answer.out


async def test_distrust_takes_it_back(theirs: Person) -> None:
    await theirs.run("trust", "--yes")
    answer = await theirs.run("distrust")
    assert (answer.code, answer.out) == (0, f"{theirs.project_file} is not trusted any more\n")
    assert await states(theirs) == {"untrusted"}
    assert [one["event"] for one in theirs.decisions()] == ["trusted", "distrusted"]
    again = await theirs.run("distrust")
    assert again.code == 0 and "was not trusted" in again.err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "does not exist"), ("{", "mcp.json:1:2: ")],
)
async def test_a_file_that_cannot_be_read_is_not_trusted(content: str | None, complaint: str, person: Person) -> None:
    if content is not None:
        put(person.project_file, content)
    answer = await person.run("trust", "--yes")
    assert answer.code == 1 and complaint in answer.err


async def test_a_wrong_hash_is_refused_by_its_shape(theirs: Person) -> None:
    answer = await theirs.run("trust", "--sha256", "abc")
    assert answer.code == 1 and "64 hexadecimal digits" in answer.err


async def test_escape_sequences_in_the_file_do_not_reach_the_screen(person: Person) -> None:
    person.write({"id": "a", "command": "x\x1b[2J\u202e", "args": ["\x1b]0;t\x07"]}, path=person.project_file)
    answer = await person.run("trust", answers=("n",))
    assert "\x1b" not in answer.out and "\u202e" not in answer.out and "\\x1b[2J" in answer.out


async def test_a_codex_file_of_the_project_can_be_trusted_too(person: Person) -> None:
    """It is TOML; `imports` joins it in only when it is trusted."""
    path = put(person.cwd / ".codex/config.toml", '[mcp_servers.theirs]\ncommand = "run-theirs"\n')
    put(person.user_file, {"imports": ["codex"]})
    assert await states(person) == {"untrusted"}
    answer = await person.run("trust", str(path), "--yes")
    assert answer.code == 0, answer.err
    assert "theirs: run-theirs" in answer.out
    assert await states(person) == {"ready"}


async def test_a_file_of_the_persons_own_that_others_may_write_to_has_to_be_trusted_as_well(person: Person) -> None:
    path = person.write({"id": "mine", "command": "x"}, mode=0o666)
    assert await states(person) == {"untrusted"}
    assert (await person.run("trust", str(path), "--yes")).code == 0
    assert await states(person) == {"ready"}
