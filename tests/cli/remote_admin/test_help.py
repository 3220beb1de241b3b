"""Every command teaches: its help has examples that its own parser takes, under the name it was called by."""

from __future__ import annotations

import json
import shlex

import pytest
from jsonschema_rs import validator_for

from dari.cli.kit.commands import CommandEntry
from dari.cli.remote.main import REMOTE, load, parser_of
from tests.support.remote_user import Person

MINE = [
    *("add", "remove", "rename", "enable", "disable", "import", "trust", "distrust", "test", "doctor"),
    *("approve", "pins", "forget-pins", "approvals", "schema"),
]
COMMANDS = [command for command in REMOTE if command.name in MINE]


def test_all_of_them_are_there() -> None:
    assert sorted(command.name for command in COMMANDS) == sorted(MINE)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_help_shows_examples_under_either_name(command: CommandEntry, person: Person) -> None:
    for program in ("dari remote", "crewx mcp remote"):
        answer = await person.run(command.name, "--help", program=program)
        assert answer.code == 0 and answer.out.startswith(f"usage: {program} {command.name}")
        assert f"  {program} {command.name}" in answer.out and "exit codes:" in answer.out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_examples_are_ones_that_it_takes(command: CommandEntry) -> None:
    loaded = load(command)
    assert command.name == loaded.name and loaded.examples
    for example, _ in loaded.examples:
        name, *words = shlex.split(example.partition(" > ")[0])
        assert name == command.name
        if loaded.split is not None:
            words, _ = loaded.split(words)
        parser_of(command, "dari remote").parse_args(words)


async def test_the_overview_lists_them(person: Person) -> None:
    answer = await person.run("--help")
    for command in COMMANDS:
        assert f"  {command.name} " in answer.out


async def test_schema_prints_a_schema_that_takes_what_add_writes(person: Person) -> None:
    answer = await person.run("schema")
    await person.run("add", "files", "--allow", "/usr:ro", "--network", "none", "--default", "--", "npx", "x")
    await person.run("add", "prod", "--url", "https://h/mcp", "--header", "A: b")
    validator = validator_for(answer.json)
    assert validator.is_valid(json.loads(person.user_file.read_text()))
    assert not validator.is_valid({"servers": [{"id": "a", "commando": "x"}]})
