"""`--help` teaches: what a command does, examples, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.cli.remote import main
from dari.cli.remote.main import EXIT_CODES
from tests.support.remote_command import Screen, shop

PROGRAMS = ("crewx mcp remote", "dari remote", "crewx mcp")
COMMANDS = [(program, command) for program in PROGRAMS for command in main.commands_of(program) if command.help]


@pytest.mark.parametrize("program, command", COMMANDS)
async def test_every_command_has_help_with_examples_and_exit_codes(
    tmp_path: Path, program: str, command: main.CommandEntry
) -> None:
    async with shop(tmp_path) as run:
        done = await run(command.name, "--help", program=program)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"usage: {program} {command.name}")
        assert f"\nexamples:\n  {program} {command.name}" in done.out
        assert done.out.endswith(EXIT_CODES + "\n")
        assert "--log" in done.out and "--config" in done.out


@pytest.mark.parametrize("program, command", COMMANDS)
def test_a_module_is_called_what_its_command_is_called(program: str, command: main.CommandEntry) -> None:
    loaded = main.load(command)
    assert command.name == loaded.name and loaded.help


@pytest.mark.parametrize("program", PROGRAMS)
async def test_the_overview_lists_every_command(tmp_path: Path, program: str) -> None:
    async with shop(tmp_path) as run:
        for words in (("--help",), ("-h",), ("help",), ("--log", "--help")):
            done = await run(*words, program=program)
            assert (done.code, done.err) == (0, "")
            assert all(f"\n  {command.name} " in done.out for command in main.commands_of(program) if command.help)
            assert "__complete" not in done.out


async def test_no_command_is_a_usage_error_with_the_overview_on_stderr(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for words in ((), ("--log",), ("--config", "crewx.yaml")):
            done = await run(*words)
            assert (done.code, done.out) == (1, "") and "commands:" in done.err
        done = await run("--config")
        assert done.code == 1 and "--config needs a file" in done.err


async def test_a_slip_in_a_command_gets_the_one_that_was_meant(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert "list-tools'?" in (await run("list_tools")).err
        assert "call-tool'?" in (await run("calltool")).err


async def test_global_options_stand_before_or_after_the_command(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for words in (
            ("--log", "--config", "crewx.yaml", "list-tools"),
            ("--config=crewx.yaml", "--no-daemon", "--log", "list-tools"),
            ("list-tools", "--log", "--config", "crewx.yaml", "--no-daemon"),
        ):
            done = await run(*words)
            assert done.code == 0 and "[log] → tools/list" in done.err


async def test_help_fits_the_screen(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for columns in (60, 100):
            screen = Screen()
            screen.columns = columns
            lines = (await run.on(screen, "list-prompts", "--help")).out.splitlines()
            options = [line for line in lines if line.startswith("  --")]
            assert options and max(map(len, options)) <= columns
