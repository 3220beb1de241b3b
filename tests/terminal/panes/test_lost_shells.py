"""Commands go on when the pane's shell is no longer the one that was started: replaced, nested, far away, unhooked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dari.errors import Conflict
from dari.terminal.panes.pane import Pane
from tests.support.panes import pane_in

NESTED = [
    ("bash", "bash"),
    ("bash", "env -i bash --norc"),
    ("bash", "dash"),
    ("bash", "zsh -f"),
    ("bash", "fish"),
    ("zsh", "(bash --norc)"),
    ("fish", "bash -i"),
    ("dash", "bash"),
    ("dash", "dash"),
]
REPLACED = [
    ("bash", "exec zsh"),
    ("bash", "exec bash --norc"),
    ("bash", "exec sh"),
    ("zsh", "exec dash"),
    ("fish", "exec bash"),
    ("dash", "exec zsh -f"),
]
# They look like ssh and docker exec: another terminal, a shell that we cannot reach, keys passed on as they come.
FAR = [
    ("bash", "script -qc bash /dev/null"),
    ("bash", "script -qc dash /dev/null"),
    ("zsh", "script -qc 'zsh -f' /dev/null"),
    ("fish", "script -qc 'bash --norc' /dev/null"),
    ("dash", "python3 -c 'import pty; pty.spawn(\"bash\")'"),
]
UNHOOKED = [
    ("bash", "PROMPT_COMMAND="),
    ("bash", "unset PROMPT_COMMAND"),
    ("bash", "PS1="),
    ("bash", "PROMPT_COMMAND=; PS1='x '; PS0=; PS2="),
    ("bash", "set +o emacs"),
    ("bash", "set -u; trap - DEBUG"),
    ("zsh", "precmd_functions=()"),
    ("zsh", "precmd_functions=() preexec_functions=() PS1='% '"),
    ("fish", "function fish_prompt; echo -n '> '; end"),
    ("dash", "PS1="),
    ("dash", "PS1='> '"),
]
PROBES = [
    ("echo hello", 0, "hello"),
    ("false", 1, ""),
    ("printf abc", 0, "abc"),
    ("echo 'one\ntwo'", 0, "one\ntwo"),
    ("sh -c 'echo told >&2; exit 7'", 7, "told"),
]


def needs(shell: str, command: str) -> None:
    words = {shell, *command.replace("(", " ").replace("'", " ").split()}
    for name in words & {"bash", "zsh", "fish", "dash", "script", "python3"}:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not on this machine")


async def check_commands(pane: Pane, known_by: str) -> None:
    wrong = []
    for command, code, output in PROBES:
        done = await pane.execute(command, 20)
        if (done.status, done.exit_code, done.output, done.end_known_by) != ("done", code, output, known_by):
            wrong.append((command, done))
    broken = await pane.execute('echo "not closed', 20)
    if broken.status != "done" or not broken.exit_code or not broken.output:
        wrong.append(("a syntax error", broken))
    assert not wrong


@pytest.mark.parametrize(("shell", "command"), NESTED)
async def test_a_shell_inside_the_shell_takes_commands_and_ends(shell: str, command: str, tmp_path: Path) -> None:
    needs(shell, command)
    async with pane_in(tmp_path, shell) as pane:
        begun = await pane.execute(command, 30)
        assert (begun.status, begun.end_known_by) == ("running", ""), "its prompt is seen, and not waited out"
        await check_commands(pane, "shell")
        assert (await pane.execute("exit 3", 20)).exit_code == 3
        ended = await pane.wait_command(begun.command_id, 20)
        assert (ended.status, ended.exit_code) == ("done", 3)
        await check_commands(pane, "shell")


@pytest.mark.parametrize(("shell", "command"), REPLACED)
async def test_a_shell_in_the_place_of_the_shell_takes_commands(shell: str, command: str, tmp_path: Path) -> None:
    needs(shell, command)
    async with pane_in(tmp_path, shell) as pane:
        replaced = await pane.execute(command, 30)
        assert (replaced.status, replaced.output) == ("done", "")
        await check_commands(pane, "shell")
        await pane.execute("exit 4", 20)
        assert await pane.exited() == 4


@pytest.mark.parametrize(("shell", "command"), FAR)
async def test_a_shell_that_cannot_be_taught_runs_commands_between_marks(
    shell: str, command: str, tmp_path: Path
) -> None:
    needs(shell, command)
    async with pane_in(tmp_path, shell) as pane:
        begun = await pane.execute(command, 30)
        assert begun.status == "running"
        await check_commands(pane, "mark")
        running = await pane.execute("sleep 1000", 0.3)
        assert (running.status, running.end_known_by) == ("running", "")
        with pytest.raises(Conflict):
            await pane.execute("echo too early", 0.2)
        ended = await pane.interrupt(running.command_id, 20)
        assert ended is not None and ended.status == "done"
        await pane.execute("exit", 20)
        assert (await pane.wait_command(begun.command_id, 20)).status == "done"
        await check_commands(pane, "shell")


@pytest.mark.parametrize(("shell", "command"), UNHOOKED)
async def test_a_shell_whose_hooks_are_taken_away_gets_them_back(shell: str, command: str, tmp_path: Path) -> None:
    needs(shell, command)
    async with pane_in(tmp_path, shell) as pane:
        lost = await pane.execute(command, 30)
        assert (lost.status, lost.exit_code, lost.output) == ("done", 0, "")
        await check_commands(pane, "shell")


async def test_the_command_that_takes_the_hooks_away_keeps_its_output_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "reset.sh").write_text("echo reset\nPROMPT_COMMAND=\nPS1='$ '\nPS0=\nreturn 5\n")
    async with pane_in(tmp_path) as pane:
        lost = await pane.execute("source reset.sh", 30)
        assert (lost.exit_code, lost.output) == (5, "reset")
        await check_commands(pane, "shell")


async def test_su_is_a_shell_like_others(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("su asks for a password")
    async with pane_in(tmp_path) as pane:
        assert (await pane.execute("su", 30)).status == "running"
        await check_commands(pane, "shell")


async def test_a_shell_of_another_user_runs_commands_between_marks(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else without a password")
    async with pane_in(tmp_path, cwd="/") as pane:
        assert (await pane.execute("su -s /bin/bash nobody", 30)).status == "running"
        done = await pane.execute("id -un", 20)
        assert (done.exit_code, done.output, done.end_known_by) == (0, "nobody", "mark")


async def test_a_program_that_reads_lines_is_not_taken_for_a_prompt(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        for command in ("cat", "read x", "read -s -n 1 x", "read -e x", "python3 -q", "bash -c 'read -p \"$ \" x'"):
            running = await pane.execute(command, 0.4)
            assert running.status == "running", command
            with pytest.raises(Conflict):
                await pane.execute("echo typed into it", 0.4)
            ended = await pane.interrupt(running.command_id, 1)
            if ended is None or ended.status == "running":
                await pane.write(b"\x04")
                assert (await pane.wait_command(running.command_id, 20)).status == "done"


async def test_a_pane_that_runs_no_shell_of_ours_takes_commands_at_the_prompt_it_shows(tmp_path: Path) -> None:
    needs("bash", "script")
    async with pane_in(tmp_path, command=("script", "-qc", "bash --norc", "/dev/null")) as pane:
        await pane.wait_for("# " if os.geteuid() == 0 else "$ ", since=0)
        done = await pane.execute("echo there; (exit 9)", 20)
        assert (done.exit_code, done.output, done.end_known_by) == (9, "there", "mark")


async def test_a_shell_of_another_family_is_known_by_its_prompt_alone(tmp_path: Path) -> None:
    """tcsh is seldom installed: a program of its name that shows a prompt and runs lines stands in for it."""
    program = tmp_path / "tcsh"
    program.write_text("#!/bin/bash --norc\nwhile IFS= read -r -p 'host> ' line; do eval \"$line\"; done\n")
    program.chmod(0o755)
    async with pane_in(tmp_path, command=(str(program),)) as pane:
        await pane.wait_for("host> ", since=0)
        done = await pane.execute("echo far away", 20)
        assert (done.status, done.exit_code, done.output) == ("done", None, "far away")
        assert done.end_known_by == "idle"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("command", ["exec >log", "exec 2>log", "exec >log 2>&1"])
async def test_a_shell_that_writes_into_a_file_still_tells_of_its_commands(
    shell: str, command: str, tmp_path: Path
) -> None:
    needs(shell, shell)
    is_shown = " >" not in command
    async with pane_in(tmp_path, shell) as pane:
        for line, code, output in [
            (command, 0, ""),
            ("echo hello", 0, "hello" if is_shown else ""),
            ("sh -c 'exit 7'", 7, ""),
            ("echo 'one\ntwo'", 0, "one\ntwo" if is_shown else ""),
        ]:
            done = await pane.execute(line, 5)
            assert (done.status, done.exit_code, done.output) == ("done", code, output), line
            assert done.end_known_by == "shell", line
        broken = await pane.execute('echo "not closed', 5)
        assert (broken.status, broken.exit_code in (1, 2), broken.end_known_by) == ("done", True, "shell")
        log = (tmp_path / "log").read_text()
        assert ";C;" not in log
        assert ";D;" not in log
        assert is_shown or "hello\n" in log
        await pane.execute("exec >/dev/tty 2>&1", 5)
        await check_commands(pane, "shell")


async def test_the_end_of_a_command_is_heard_through_a_pipe_behind_the_prompt(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        assert (await pane.execute("exec > >(tee log)", 5)).end_known_by == "shell"
        for number in range(10):
            done = await pane.execute(f"echo number {number}; sh -c 'exit {number}'", 5)
            assert (done.status, done.exit_code, done.end_known_by) == ("done", number, "shell")
            assert f"number {number}" in done.output.splitlines()  # beside it a prompt that overtook the pipe
