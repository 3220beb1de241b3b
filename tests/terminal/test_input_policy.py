"""Every path on which something can run asks the policy first (design 002 §7): none of them is a way round it."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dari.errors import Denied, InvalidInput, NeedsApproval
from dari.terminal.api.workflow import WorkflowStep
from dari.terminal.policy.config import Security
from dari.terminal.session_store import SavedCell, SavedPane, SavedSession, SavedTab, SavedWindow, SessionStore
from tests.support.terminal_service import House, approve, house_in
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("own_home")

Path_ = Callable[[House, str], Awaitable[object]]


async def execute(house: House, command: str) -> object:
    return await house.service.commands.execute(command)


async def send_text_with_enter(house: House, command: str) -> object:
    return await house.service.commands.send_text(f"{command}\n")


async def send_text_then_enter(house: House, command: str) -> object:
    return await house.service.commands.send_text(command, enter=True)


async def type_in_pieces(house: House, command: str) -> object:
    for character in command:
        await house.service.commands.send_text(character)
    return await house.service.commands.send_keys("Enter")


async def send_keys(house: House, command: str) -> object:
    return await house.service.commands.send_keys(f"{command}<Enter>")


async def send_keys_with_another_enter(house: House, command: str) -> object:
    await house.service.commands.send_keys(command, literal=True)
    return await house.service.commands.send_keys("C-o")


async def paste(house: House, command: str) -> object:
    return await house.service.commands.send_text(f"{command}\n", paste=True)


async def enter_what_a_person_typed(house: House, command: str) -> object:
    await house.service.commands.write(b64encode(command.encode()).decode())
    return await house.service.commands.send_keys("Enter")


async def create_with_command(house: House, command: str) -> object:
    return await house.service.panes.spawn_pane(command=command)


async def create_with_program(house: House, command: str) -> object:
    return await house.service.panes.spawn_pane(argv=command.split())


async def restore_with_commands(house: House, command: str) -> object:
    pane = SavedPane(id="1", name="x", cwd="/", shell="/bin/bash", command=command)
    window = SavedWindow(80, 24, (SavedTab(SavedCell(80, 24, "1"), ("1",)),))
    store = SessionStore(Path(str(house.multiplexer.socket_path)).with_name("sessions"))
    store.save(SavedSession(name="s", windows=(window,), panes=(pane,), focused="1"))
    return await house.service.sessions.restore_session("s", commands=True)


PATHS: list[Path_] = [
    execute,
    send_text_with_enter,
    send_text_then_enter,
    type_in_pieces,
    send_keys,
    send_keys_with_another_enter,
    paste,
    enter_what_a_person_typed,
    create_with_command,
    create_with_program,
    restore_with_commands,
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
async def test_a_denied_command_does_not_run(path: Path_, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    async with house_in(tmp_path, Security(denied_patterns=("unlink",))) as house:
        await house.service.commands.execute("true")
        with pytest.raises(Denied, match="unlink"):
            await path(house, f"unlink {victim}")
        await house.service.commands.send_keys("C-c")
        await house.service.commands.execute("true")
    assert victim.exists()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
async def test_a_dangerous_command_waits_for_a_person(path: Path_, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        with pytest.raises(NeedsApproval, match="rm"):
            await path(house, f"rm {victim}")
        await house.service.commands.send_keys("C-c")
        await house.service.commands.execute("true")
    assert victim.exists()


async def test_what_a_person_agreed_to_runs_and_nothing_else(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.touch()
    two.touch()
    async with house_in(tmp_path) as house:
        with pytest.raises(NeedsApproval) as asked:
            await house.service.commands.execute(f"rm {one}")
        await approve(house, asked.value)
        with pytest.raises(NeedsApproval):
            await house.service.commands.execute(f"rm {two}")
        done = await house.service.commands.execute(f"rm {one}")
        assert done.exit_code == 0
    assert (one.exists(), two.exists()) == (False, True)


async def test_a_line_that_editing_keys_changed_is_shown_to_a_person(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("echo before")
        await house.service.commands.send_keys("Up")
        with pytest.raises(NeedsApproval):
            await house.service.commands.send_keys("Enter")


async def test_a_command_typed_ahead_of_a_program_that_does_not_read_it_is_judged(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("sleep 1000", timeout_s=0.1)
        with pytest.raises(NeedsApproval):
            await house.service.commands.send_text("rm -r x\n")


async def test_an_answer_to_a_password_prompt_is_not_judged(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        begun = await house.service.commands.execute("read -s secret; echo ${#secret} letters", timeout_s=0.0)
        pane = house.multiplexer.find()
        await until(lambda: pane.is_asking_secret)
        assert pane.is_at_prompt is False
        await house.service.commands.send_text("rm -rf /\n")
        done = await house.service.commands.wait_command(begun.command_id, 30)
        assert done.stdout == "8 letters"


async def test_panes_stay_below_allowed_directories(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    async with house_in(tmp_path, Security(allowed_directories=(str(inside.resolve()),))) as house:
        with pytest.raises(Denied, match="allowed_directories"):
            await house.service.panes.spawn_pane(cwd=str(tmp_path))
        await house.service.panes.spawn_pane(cwd=str(inside))
        with pytest.raises(Denied):
            await house.service.commands.execute("cat ../secret")
        assert (await house.service.commands.execute("echo fine")).stdout == "fine"


async def test_the_time_for_a_command_is_that_of_the_settings(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(command_timeout_ms=50)) as house:
        assert (await house.service.commands.execute("sleep 1000")).status == "running"


async def test_two_senders_at_once_cannot_put_a_command_together(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        results = await asyncio.gather(
            house.service.commands.send_text("rm "),
            house.service.commands.send_text("victim\n"),
            return_exceptions=True,
        )
        assert isinstance(results[1], NeedsApproval)
        await house.service.commands.send_keys("C-c")
        await house.service.commands.execute("true")
    assert (tmp_path / "victim").exists()


@pytest.mark.parametrize("name", ["PROMPT_COMMAND", "BASH_ENV", "LD_PRELOAD", "ZDOTDIR"])
async def test_a_variable_that_runs_something_needs_a_person(name: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        with pytest.raises(NeedsApproval, match=name):
            await house.service.panes.spawn_pane(env={"HARMLESS": "1", name: "/tmp/x"})
        await house.service.panes.spawn_pane(env={"HARMLESS": "$(rm x)"})
        assert (await house.service.commands.execute("echo $HARMLESS")).stdout == "$(rm x)"
        with pytest.raises(InvalidInput):
            await house.service.panes.spawn_pane(env={"A=1; rm": "x"})


async def test_a_shell_is_one_that_we_know(tmp_path: Path) -> None:
    evil = tmp_path / "bash"
    evil.write_text("#!/bin/sh\nrm victim\n")
    evil.chmod(0o700)
    async with house_in(tmp_path, Security(allowed_commands=("echo",))) as house:
        with pytest.raises(InvalidInput):
            await house.service.panes.spawn_pane(shell="/bin/rm")
        with pytest.raises(NeedsApproval):
            await house.service.panes.spawn_pane(shell=str(evil))
        assert (await house.service.panes.spawn_pane(shell="/bin/bash")).shell == "bash"


async def test_one_question_about_all_commands_of_a_session(tmp_path: Path) -> None:
    panes = tuple(
        SavedPane(id=name, name=name, cwd=str(tmp_path), shell="/bin/bash", command=f"rm -f {name}") for name in "ab"
    )
    cell = SavedCell(80, 24, children=(SavedCell(40, 24, "a"), SavedCell(39, 24, "b")))
    window = SavedWindow(80, 24, (SavedTab(cell, ("a", "b")),))
    for name in "ab":
        (tmp_path / name).touch()
    async with house_in(tmp_path) as house:
        SessionStore(tmp_path / "sessions").save(SavedSession(name="s", windows=(window,), panes=panes, focused="a"))
        with pytest.raises(NeedsApproval) as asked:
            await house.service.sessions.restore_session("s", commands=True)
        assert "rm -f a" in asked.value.message and "rm -f b" in asked.value.message
        await approve(house, asked.value)
        await house.service.sessions.restore_session("s", commands=True)
        for name in "ab":
            await house.service.commands.execute("true", name)
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()


async def test_where_directories_are_limited_the_first_pane_begins_inside_and_none_outside(tmp_path: Path) -> None:
    inside = (tmp_path / "inside").resolve()
    inside.mkdir()
    (inside / "out").symlink_to(tmp_path)
    async with house_in(tmp_path, Security(allowed_directories=(str(inside),))) as house:
        assert (await house.service.commands.execute("pwd")).stdout == str(inside)
        outside = str(inside / "out")
        with pytest.raises(Denied):
            await house.service.scripts.open_pane(cwd=outside)
        with pytest.raises(Denied):
            await house.service.scripts.respawn_pane(cwd=outside, force=True)
        with pytest.raises(Denied):
            await house.service.workspaces.load_workspace("monitoring", outside)
        waited = await house.service.workflow.coordinate(
            [WorkflowStep(pane="new", cwd=outside, wait_for="never", timeout_ms=1000)]
        )
        assert not waited.success and "outside allowed_directories" in waited.steps[0].reason
        # A shell that a person took elsewhere is not used there.
        await house.service.commands.write(b64encode(f"cd {tmp_path}\r".encode()).decode())
        pane = house.multiplexer.find()
        async with asyncio.timeout(15):
            await until(lambda: pane.cwd() == str(tmp_path))
        with pytest.raises(Denied):
            await house.service.commands.execute("ls")
