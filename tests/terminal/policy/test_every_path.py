"""Design 002 §7.2: nothing that an agent can do runs a dangerous command before a person agreed, on no path.

The paths of the core tools are in tests/terminal/test_input_policy.py; here are the special tools, what scripts
ask of tmux, and ways to make a shell run what does not look like a command when it is sent.
"""

from __future__ import annotations

import asyncio
import shutil
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dari.errors import InvalidInput, NeedsApproval
from dari.terminal.api.workflow import WorkflowStep
from dari.terminal.policy.config import Security
from dari.terminal.session_store import SavedCell, SavedPane, SavedSession, SavedTab, SavedWindow, SessionStore
from tests.support.terminal_service import House, house_in
from tests.support.waiting import until

Way = Callable[[House, str], Awaitable[object]]


async def paste_smart_with_enter(house: House, command: str) -> object:
    return await house.service.clipboard.paste(text=command, form="plain", enter=True)


async def paste_smart_of_lines(house: House, command: str) -> object:
    return await house.service.clipboard.paste(text=f"{command}\necho\n", form="plain", allow_lines=True)


async def paste_then_enter(house: House, command: str) -> object:
    await house.service.clipboard.paste(text=command, form="plain")
    return await house.service.commands.send_keys("Enter")


async def type_with_ime(house: House, command: str) -> object:
    return await house.service.input_method.type_with_ime(command, mode="text", enter=True)


async def load_workspace(house: House, command: str) -> object:
    return await house.service.workspaces.load_workspace("monitoring", "/", commands={"logs": command})


async def coordinate(house: House, command: str) -> object:
    return await house.service.workflow.coordinate([WorkflowStep(command="true"), WorkflowStep(command=command)])


async def stream(house: House, command: str) -> object:
    return await house.service.streams.begin(command=command)


async def start_and_follow(house: House, command: str) -> object:
    return await house.service.follow.start(command)


async def inject_an_alias(house: House, command: str) -> object:
    return await house.service.contexts.inject(aliases={"ll": command})


async def inject_a_function(house: House, command: str) -> object:
    return await house.service.contexts.inject(functions={"cd": command})


async def inject_a_prompt(house: House, command: str) -> object:
    return await house.service.contexts.inject(env={"PS1": f"$({command})"})


async def restore_a_snapshot(house: House, command: str) -> object:
    pane = SavedPane(id="1", name="x", cwd="/", shell="/bin/bash", command=command)
    window = SavedWindow(80, 24, (SavedTab(SavedCell(80, 24, "1"), ("1",)),))
    folder = Path(str(house.multiplexer.socket_path)).with_name("snapshots")
    SessionStore(folder).save(SavedSession(name="s", windows=(window,), panes=(pane,), focused="1"))
    return await house.service.snapshots.restore("s", commands=True)


async def open_as_tmux(house: House, command: str) -> object:
    return await house.service.scripts.open_pane(argv=command.split())


async def respawn_as_tmux(house: House, command: str) -> object:
    return await house.service.scripts.respawn_pane(argv=["sh", "-c", command], force=True)


async def open_with_a_start_file(house: House, command: str) -> object:
    return await house.service.panes.spawn_pane(env={"BASH_ENV": f"/dev/fd/3 {command}"})


async def history_by_its_prefix(house: House, command: str) -> object:
    await house.service.commands.write(b64encode(f" {command} 2>&-".encode()).decode())
    await house.service.commands.send_keys("C-c")
    return await house.service.commands.send_text("!rm\n")


async def a_line_of_the_history(house: House, command: str) -> object:
    await house.service.commands.send_keys("C-r")
    await house.service.commands.send_text("victim")
    return await house.service.commands.send_keys("Enter")


async def a_delete_key_that_is_no_clear(house: House, command: str) -> object:
    await house.service.commands.send_text(command)
    await house.service.commands.send_keys("C-d")
    return await house.service.commands.send_keys("Enter")


async def a_clear_that_clears_nothing(house: House, command: str) -> object:
    await house.service.commands.send_text(command)
    await house.service.commands.send_keys("C-a C-u")
    return await house.service.commands.send_keys("Enter")


async def an_accent_that_goes_with_its_letter(house: House, command: str) -> object:
    await house.service.commands.send_text(command.replace("rm", "re\u0301\x7fm", 1))
    return await house.service.commands.send_keys("Enter")


async def an_editor_on_the_line(house: House, command: str) -> object:
    await house.service.commands.send_text(command)
    await house.service.commands.send_keys("C-x")
    return await house.service.commands.send_keys("C-e")


async def an_enter_with_a_modifier(house: House, command: str) -> object:
    await house.service.commands.send_text(command)
    return await house.service.commands.send_keys("C-Enter")


async def a_shell_in_the_shell(house: House, command: str) -> object:
    await house.service.commands.execute("bash --norc", timeout_s=0.0)
    assert (await house.service.commands.wait_for("bash-", is_regex=False, timeout_s=20, since=0)).matched
    return await house.service.commands.send_text(f"{command}\n")


async def behind_the_end_of_a_repl(house: House, command: str) -> object:
    await house.service.commands.execute("python3 -q", timeout_s=0.0)
    await house.service.commands.wait_for(">>> ", is_regex=False, timeout_s=20, since=0)
    return await house.service.commands.send_text(f"exit()\n{command}\n")


async def soon_after_the_end_of_a_repl(house: House, command: str) -> object:
    await house.service.commands.execute("python3 -q", timeout_s=0.0)
    await house.service.commands.wait_for(">>> ", is_regex=False, timeout_s=20, since=0)
    await house.service.commands.send_text("exit()\n")
    return await house.service.commands.send_text(f"{command}\n")


async def behind_a_password(house: House, command: str) -> object:
    await house.service.commands.execute("read -s secret", timeout_s=0.0)
    pane = house.multiplexer.find()
    async with asyncio.timeout(10):
        await until(lambda: not (not pane.is_asking_secret and pane.has_echo))
    return await house.service.commands.send_text(f"word\n{command}\n")


async def typed_ahead_of_a_prompt(house: House, command: str) -> object:
    begun = await house.service.commands.execute("sleep 0.2", timeout_s=0.0)
    await house.service.commands.send_text(command)
    await house.service.commands.wait_command(begun.command_id)
    return await house.service.commands.send_keys("Enter")


async def behind_the_end_of_a_pager(house: House, command: str) -> object:
    await house.service.commands.execute("seq 1000 | less", timeout_s=0.0)
    assert (await house.service.commands.wait_for("39", is_regex=False, timeout_s=20, since=0)).matched
    await house.service.commands.send_text(f"q{command}")
    return await house.service.commands.send_keys("Enter")


async def out_of_a_pager(house: House, command: str) -> object:
    await house.service.commands.execute("seq 1000 | less", timeout_s=0.0)
    assert (await house.service.commands.wait_for("39", is_regex=False, timeout_s=20, since=0)).matched
    await house.service.commands.send_keys("j j")
    return await house.service.commands.send_text(f"!{command}\n")


async def out_of_a_pager_whose_input_goes_on(house: House, command: str) -> object:
    await house.service.commands.execute("yes 39 | less", timeout_s=0.0)
    assert (await house.service.commands.wait_for("39\n39", is_regex=False, timeout_s=20, since=0)).matched
    await house.service.commands.send_keys("j j")
    return await house.service.commands.send_text(f"!{command}\n")


async def out_of_an_editor(house: House, command: str) -> object:
    await house.service.commands.execute("vi -u NONE notes.txt", timeout_s=0.0)
    assert (await house.service.commands.wait_for("notes.txt", is_regex=False, timeout_s=20, since=0)).matched
    await house.service.commands.send_keys("Escape")
    await house.service.commands.send_text(":r !")
    return await house.service.commands.send_text(f"{command}\n")


async def with_the_echo_turned_off(house: House, command: str) -> object:
    return await house.service.commands.execute("stty -echo; sleep 9")


WAYS: list[Way] = [
    paste_smart_with_enter,
    paste_smart_of_lines,
    paste_then_enter,
    type_with_ime,
    load_workspace,
    coordinate,
    stream,
    start_and_follow,
    inject_an_alias,
    inject_a_function,
    inject_a_prompt,
    restore_a_snapshot,
    open_as_tmux,
    respawn_as_tmux,
    open_with_a_start_file,
    history_by_its_prefix,
    a_line_of_the_history,
    a_delete_key_that_is_no_clear,
    a_clear_that_clears_nothing,
    an_accent_that_goes_with_its_letter,
    an_editor_on_the_line,
    an_enter_with_a_modifier,
    a_shell_in_the_shell,
    out_of_a_pager,
    out_of_a_pager_whose_input_goes_on,
    out_of_an_editor,
    behind_the_end_of_a_repl,
    soon_after_the_end_of_a_repl,
    behind_a_password,
    typed_ahead_of_a_prompt,
    behind_the_end_of_a_pager,
    with_the_echo_turned_off,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_dangerous_command_does_not_run_before_a_person_agrees(way: Way, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    async with house_in(tmp_path) as house:
        await house.service.commands.execute(f"cd {tmp_path}")
        with pytest.raises(NeedsApproval):
            await way(house, "rm victim")
        for pane in list(house.multiplexer.panes.values()):
            if pane.is_alive and pane.is_at_prompt:
                await house.service.commands.send_keys("C-c", pane.id)
                await house.service.commands.execute("true", pane.id)
    assert victim.exists()


async def test_the_key_by_which_the_terminal_speaks_to_a_shell_is_not_typed_by_agents(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        for pieces in (["\x1b[7701~"], ["\x1b[77", "01~"], [*"\x1b[7701~"]):
            with pytest.raises(InvalidInput):
                for piece in pieces:
                    await house.service.commands.send_text(piece)
            await house.service.commands.send_keys("C-c")


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
async def test_what_was_typed_ahead_is_no_part_of_the_next_command(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", shell)
    async with house_in(tmp_path) as house:
        await house.service.commands.execute(f"cd {tmp_path}; touch victim")
        begun = await house.service.commands.execute("sleep 0.2", timeout_s=0.0)
        await house.service.commands.send_text("rm victim ")
        await house.service.commands.wait_command(begun.command_id)
        assert (await house.service.commands.execute("echo next")).stdout == "next"
    assert (tmp_path / "victim").exists()


async def test_after_a_pager_was_left_one_goes_on_typing(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(allowed_commands=("seq", "less", "echo"))) as house:
        await house.service.commands.execute("seq 1000 | less", timeout_s=0.0)
        assert (await house.service.commands.wait_for("39", is_regex=False, timeout_s=20, since=0)).matched
        await house.service.commands.send_keys("Down Down q")
        await house.multiplexer.find().commands.ready(10)
        await house.service.commands.send_text("echo after''wards\n")
        assert (await house.service.commands.wait_for("afterwards", timeout_s=30, since=0)).matched


async def test_an_editor_is_typed_into_without_questions(tmp_path: Path) -> None:
    if shutil.which("vi") is None:
        pytest.skip("vi is not on this machine")
    async with house_in(tmp_path) as house:
        await house.service.commands.execute(f"vi -u NONE {tmp_path}/notes.txt", timeout_s=0.0)
        await house.service.commands.wait_for("notes.txt", is_regex=False, timeout_s=20, since=0)
        for line in ("iWarning! rm removes files", "\x1b:w!", ":!ls", ":q!"):
            await house.service.commands.send_text(line + "\n")
        await until(lambda: (tmp_path / "notes.txt").exists())


async def test_a_repl_is_typed_into_without_questions(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(allowed_commands=("python3",))) as house:
        await house.service.commands.execute("python3 -q", timeout_s=0.0)
        await house.service.commands.wait_for(">>> ", is_regex=False, timeout_s=20, since=0)
        for line in ("import os", "x = [n for n in range(3)]; print(sum(x), 'rm')", "print(f\"{'kill':>9}\")"):
            await house.service.commands.send_text(line + "\n")
        assert (await house.service.commands.wait_for("     kill", is_regex=False, timeout_s=30, since=0)).matched
