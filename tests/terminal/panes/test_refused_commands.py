"""A command that was refused before it was typed leaves the pane as it was: the next one runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Conflict, InvalidInput
from dari.terminal.panes import pane as pane_module
from tests.support.panes import pane_in
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import client_in

SHELLS = ["bash", "zsh", "fish", "dash"]


async def test_a_command_that_is_too_long_leaves_the_pane_free(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_create_pane")
        refused = await client.call("crux_execute_command", command="echo " + "a" * 1_100_000)
        assert refused["error"]["name"] == "invalid_input"
        done = await client.call("crux_execute_command", command="echo next")
        assert (done["exit_code"], done["stdout"]) == (0, "next")


@pytest.mark.parametrize("shell", SHELLS)
async def test_after_a_command_that_was_refused_the_next_one_runs(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute("true")
        await pane.write(b"echo begun ")
        with monkeypatch.context() as patch:
            patch.setattr(pane_module, "MAX_QUEUED_BYTES", 10)
            with pytest.raises(Conflict):
                await pane.execute("echo much too long")
        assert [record.command for record in pane.commands.records] == ["true"]
        done = await pane.execute("echo next", 15)
        assert (done.exit_code, done.output, done.status) == (0, "next", "done")


async def test_after_a_refused_command_for_a_shell_far_away_the_next_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("script -qc 'bash --norc' /dev/null", 0.0)
        await pane.wait_for("bash-", since=0, timeout_s=15)
        with monkeypatch.context() as patch:
            patch.setattr(pane_module, "MAX_QUEUED_BYTES", 10)
            with pytest.raises(Conflict):
                await pane.execute("echo much too long", 15)
        assert not pane.is_at_prompt
        done = await pane.execute("echo next", 15)
        assert (done.exit_code, done.output, done.end_known_by) == (0, "next", "mark")


async def test_a_shell_in_the_shell_that_could_not_be_taught_its_hooks_is_taught_them_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("bash --norc", 0.0)
        await pane.wait_for("bash-", since=0, timeout_s=15)
        with monkeypatch.context() as patch:
            patch.setattr(pane_module, "MAX_QUEUED_BYTES", 10)
            with pytest.raises(Conflict):
                await pane.execute("echo much too long", 15)
        done = await pane.execute("echo next", 15)
        assert (done.exit_code, done.output, done.end_known_by) == (0, "next", "shell")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_a_command_that_is_not_whole_and_too_long_to_be_quoted_ends(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute("true")
        monkeypatch.setattr(pane_module, "MAX_QUEUED_BYTES", 70)
        cut = await pane.execute("echo " + "'" * 31, 15)  # quoted, it has three characters for each of these
        assert (cut.status, cut.exit_code) == ("done", None)
        done = await pane.execute("echo next", 15)
        assert (done.exit_code, done.output) == (0, "next")


async def test_a_line_that_was_refused_is_no_command_of_a_shell_without_a_line_editor(tmp_path: Path) -> None:
    async with pane_in(tmp_path, "dash") as pane:
        await pane.execute("true")
        with pytest.raises(Conflict):
            await pane.write(b"#" * 1_100_000 + b"\n")
        assert pane.commands.current is None
        done = await pane.execute("echo next", 15)
        assert (done.exit_code, done.output) == (0, "next")


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize("control", ["\0", "\x07", "\x1b", "\x7f", "\x80", "\x9b"])
async def test_a_command_with_a_control_character_is_refused_and_nobody_is_asked(control: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        with pytest.raises(InvalidInput, match="control character"):
            await house.service.commands.execute(f"echo {control}")
        assert house.service.approvals.count == 0
        assert (await house.service.commands.execute("echo next")).stdout == "next"
