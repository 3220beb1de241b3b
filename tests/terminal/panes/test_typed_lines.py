"""Lines that somebody types, at a prompt and ahead of it, are commands with their own words, in every shell."""

from __future__ import annotations

import asyncio
import shutil
import termios
from pathlib import Path

import pytest

from dari.terminal.panes import events
from dari.terminal.panes.pane import Pane
from dari.terminal.panes.pty import Pty
from tests.support.panes import Gate, pane_in
from tests.support.waiting import until

EDITING = ["bash", "zsh", "fish"]
SHELLS = [*EDITING, "sh"]


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest) -> None:
    shell = request.node.callspec.params["shell"] if hasattr(request.node, "callspec") else "sh"
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")


async def _ended(pane: Pane, *commands: str) -> list[str]:
    """The records, once these are the last of them and have ended."""

    def found() -> list[str]:
        return [record.command for record in pane.commands.records]

    def holds() -> bool:
        return found()[-len(commands) :] == list(commands) and pane.is_at_prompt

    await until(holds, lambda: f"{found()}\n{pane.engine.text(0, pane.engine.rows)}", within_s=20)
    return found()


@pytest.mark.parametrize("shell", EDITING)
async def test_lines_typed_before_the_first_prompt_are_commands(shell: str, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path, shell, env=gate.hold_start(tmp_path)) as pane:
        await gate.reached()
        await pane.send_text("echo typed ahead\necho second\nec")
        gate.let_on()
        await _ended(pane, "echo typed ahead", "echo second")
        await until(lambda: "ec" in pane._line.text(80, 24))
        await pane.send_text("ho rest\n")
        await _ended(pane, "echo typed ahead", "echo second", "echo rest")
        assert [record.output for record in pane.commands.records] == ["typed ahead", "second", "rest"]


async def test_lines_typed_before_the_first_prompt_of_sh_are_one_command(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path, "sh", env=gate.hold_start(tmp_path)) as pane:
        await gate.reached()
        await pane.send_text("echo typed ahead\necho second\nec")
        gate.let_on()
        await _ended(pane, "echo typed ahead\necho second")
        await pane.wait_for("second", since=0)
        await pane.send_text("ho rest\n")
        await _ended(pane, "echo typed ahead\necho second", "echo rest")
        assert pane.commands.records[-1].output == "rest"


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_line_typed_while_a_command_runs_is_the_next_command(shell: str, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute("true", 30)
        await pane.send_text(f"{gate.command}; false\n")
        await gate.reached()
        await pane.send_text("echo next\n")
        gate.let_on()
        await _ended(pane, "true", f"{gate.command}; false", "echo next")
        assert [record.exit_code for record in pane.commands.records] == [0, 1, 0]


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_line_typed_while_the_command_of_an_agent_runs_is_the_next_one(shell: str, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path, shell) as pane:
        assert (await pane.execute(gate.command, 0)).status == "running"
        await gate.reached()
        await pane.send_text("echo next\n")
        gate.let_on()
        await _ended(pane, gate.command, "echo next")


@pytest.mark.parametrize("shell", SHELLS)
async def test_an_agents_command_waits_for_lines_that_were_typed_ahead(shell: str, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute("true", 30)
        await pane.execute(gate.command, 0)
        await gate.reached()
        await pane.send_text("echo ahead; false\n" * 5)
        running = asyncio.create_task(pane.execute("echo mine", 30))
        await asyncio.sleep(0)  # it waits for the prompt now
        gate.let_on()
        result = await running
        assert (result.output, result.exit_code) == ("mine", 0)
        await pane.send_text("echo one; false\necho two; false\n")
        result = await pane.execute("echo again", 30)
        assert (result.output, result.exit_code) == ("again", 0)


async def test_a_shell_that_begins_to_edit_its_line_is_not_taken_for_a_password_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is typed at one is not judged by the policy."""
    async with pane_in(tmp_path, "bash") as pane:
        looks = iter([termios.ICANON | termios.ECHO, 0])
        monkeypatch.setattr(Pty, "_flags", lambda _: next(looks, 0))
        assert not pane.is_asking_secret


async def test_a_command_without_time_to_wait_is_typed_at_a_prompt_that_is_slow_to_draw(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("PS1='$(sleep 0.4)$ '\n")
    async with pane_in(tmp_path, "bash") as pane:
        await until(lambda: pane.commands.zone == "prompt")
        result = await pane.execute("echo late", 0)
        assert (await pane.wait_command(result.command_id, 30)).output == "late"


async def test_an_agents_command_waits_for_a_shell_that_is_slow_to_read_what_was_typed_ahead(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path, "zsh") as pane:
        await pane.execute("zle-line-init() { sleep 0.8 }; zle -N zle-line-init", 30)
        await pane.execute(gate.command, 0)
        await gate.reached()
        await pane.send_text("echo ahead; false\n")
        running = asyncio.create_task(pane.execute("echo mine", 30))
        await asyncio.sleep(0)  # it waits for the prompt now
        gate.let_on()
        result = await running
        assert (result.output, result.exit_code) == ("mine", 0)


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_line_is_the_one_that_was_entered_and_not_the_keys(shell: str, tmp_path: Path) -> None:
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute("echo something else", 30)  # which fish suggests again
        for key in ["e", "c", "x", "\x7f", "h", "o", " ", "h", "i", "\n"]:
            await pane.send_text(key)
        await _ended(pane, "echo something else", "echo hi")
        assert pane.commands.records[-1].output == "hi"


async def test_what_a_job_prints_at_the_prompt_is_not_part_of_the_line(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path) as pane:
        await pane.execute(f"{gate.command} &", 30)
        await gate.reached()
        await until(lambda: pane.is_at_prompt)
        since = pane.position
        gate.let_on("noise of a job\r\n")
        await pane.wait_for("noise of a job", since=since)
        await pane.send_text("echo mine\n")
        await _ended(pane, f"{gate.command} &", "echo mine")


async def test_what_a_program_asks_for_in_sh_is_not_part_of_a_command(tmp_path: Path) -> None:
    started: list[str] = []
    async with pane_in(tmp_path, "sh") as pane:
        await pane.execute("true", 30)
        pane.events.subscribe(
            lambda event: started.append(event.command) if isinstance(event, events.CommandStarted) else None
        )
        await pane.send_text("stty -echo; head -1 >/dev/null; stty echo; head -1 >/dev/null; echo over\n")
        await until(lambda: pane.is_asking_secret)
        await pane.send_text("a password\n")
        await until(lambda: not pane.is_asking_secret)
        await pane.send_text("an answer\n")
        await pane.wait_for("^over", is_regex=True, since=0)
        await until(lambda: pane.is_at_prompt)
        await until(lambda: pane._kernel_lines._is_waiting())
        await pane.send_text("\n")  # nothing: what the program read does not run
        await pane.send_text("echo end\n")
        await until(lambda: started[-1] == "echo end" and pane.is_at_prompt)
        assert [command.partition(" ")[0] for command in started] == ["stty", "echo"]
        assert not any("password" in command or "answer" in command for command in started)


async def test_a_command_of_several_lines_in_sh_is_one_command(tmp_path: Path) -> None:
    async with pane_in(tmp_path, "sh") as pane:
        await pane.execute("true", 30)
        await pane.send_text("if true; then\n")
        await until(lambda: pane.commands.wants_more)
        await pane.send_text("echo inside\n")
        await until(lambda: pane.commands.wants_more)
        await pane.send_text("fi\n")
        await _ended(pane, "true", "if true; then\necho inside\nfi")


async def test_a_line_typed_ahead_that_ends_sh_is_a_command(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with pane_in(tmp_path, "sh", env=gate.hold_start(tmp_path)) as pane:
        await gate.reached()
        await pane.send_text("exec true\n")
        gate.let_on()
        assert await pane.exited() == 0
        assert [record.command for record in pane.commands.records] == ["exec true"]
