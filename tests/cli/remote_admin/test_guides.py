"""The command lines of docs/guide/{profiles,sandbox,trust}.md are taken by the commands, and the safe ones run."""

from __future__ import annotations

import re
import shlex

import pytest

from dari.cli import approvals, audit
from dari.cli.remote.main import REMOTE, load, parser_of
from tests.support.remote_user import Person
from tests.support.wire import ROOT

PAGES = ("profiles.md", "sandbox.md", "trust.md")
COMMANDS = {command.name: command for command in REMOTE}
OTHER_PARSERS = {"audit": audit.make_parser, "approvals": approvals.make_parser}


def shell_lines(page: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/guide" / page).read_text(), re.S)
    return [line for block in blocks for line in block.splitlines()]


LINES = [(page, line) for page in PAGES for line in shell_lines(page)]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_command_line_of_a_guide_is_one_that_is_taken(page: str, line: str) -> None:
    program, group, *words = shlex.split(line)
    assert program == "dari"
    if group in OTHER_PARSERS:
        OTHER_PARSERS[group]().parse_args(words)
        return
    assert group == "remote"
    command = COMMANDS[words[0]]
    loaded = load(command)
    rest = words[1:]
    if loaded.split is not None:
        rest, _ = loaded.split(rest)
    parser_of(command, "dari remote").parse_args(rest)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_guide_names_exists(page: str) -> None:
    text = (ROOT / "docs/guide" / page).read_text()
    named = re.findall(r"`(?:dari remote|crewx mcp remote) ([a-z-]+)", text)
    assert named and [name for name in named if name not in COMMANDS] == []
    assert "being built" not in text


async def test_what_the_first_commands_of_the_guide_write_is_what_they_say(person: Person) -> None:
    """Those that start nothing, in the order of the page."""
    for line in shell_lines("profiles.md"):
        words = shlex.split(line)[2:]
        if words[0] in ("add", "servers", "rename", "disable", "enable", "remove"):
            words = [str(person.cwd) if word == "$PWD" else word for word in words]
            answer = await person.run(*words)
            assert answer.code == 0, (line, answer.err)
            assert "warning" not in answer.err
    assert set(person.servers()) == {"files", "prod", "memory"}
    assert person.servers()["files"]["allowedPaths"] == [{"path": str(person.cwd), "mode": "rw"}]


def test_the_example_of_a_trial_has_the_steps_that_there_are() -> None:
    text = (ROOT / "docs/guide/profiles.md").read_text()
    steps = re.findall(r"^  (?:ok|FAIL) +(\S+) +[\d.]+ ms", text, re.M)
    assert steps == ["profile", "program", "sandbox", "start", "agree"]
