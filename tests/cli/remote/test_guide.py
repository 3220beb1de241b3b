"""docs/guide/remote.md: its command lines are taken, and its promises about `call-tool` hold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dari.cli.remote.main import commands_of, load, parser_of
from tests.support.remote_command import shop
from tests.support.wire import ROOT

TEXT = (ROOT / "docs/guide/remote.md").read_text()
LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.S) for line in block.splitlines()]


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_of_the_guide_is_one_that_is_taken(line: str) -> None:
    words = shlex.split(re.split(r" (?:>>?|\|) (?!dari)", line)[0].rpartition(" | ")[2])
    program = next(
        one for one in ("dari remote", "crewx mcp remote", "crewx mcp") if words[: len(one.split())] == one.split()
    )
    name, *rest = words[len(program.split()) :]
    command = next(one for one in commands_of(program) if one.name == name)
    loaded = load(command)
    if loaded.split is not None:
        rest, _ = loaded.split(rest)
    parser_of(command, program).parse_args(rest)


async def test_the_options_that_the_guide_calls_our_own_are_the_commands_own(tmp_path: Path) -> None:
    command = next(one for one in commands_of("dari remote") if one.name == "call-tool")
    ours = {option for action in parser_of(command, "x")._actions for option in action.option_strings}
    (told,) = re.findall(r"Options of the command itself \(`(.*?)`\)", TEXT, re.S)
    assert set(told.split()) == {option for option in ours if option.startswith("--")} - {"--help"}


async def test_what_follows_two_dashes_is_the_tools(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "shop/variety", "--raw", "--path", "x", "--", "--output", "png")
        assert done.json["structuredContent"]["given"] == {"path": "x", "output": "png"}
