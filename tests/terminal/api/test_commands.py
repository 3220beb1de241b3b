"""Commands, keys and text into real shells, and waiting for what they print."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dari.errors import InvalidInput, NotFound
from tests.support.terminal_service import house_in


async def test_the_first_command_opens_a_pane(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        done = await house.service.commands.execute("echo one; (exit 7)")
        assert (done.exit_code, done.stdout, done.status, done.pane_id) == (7, "one", "done", "1")
        assert done.cwd == str(tmp_path)
        assert done.duration_ms > 0


async def test_two_first_commands_at_once_share_one_pane(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        one, two = await asyncio.gather(
            house.service.commands.execute("echo one"), house.service.commands.execute("echo two")
        )
        assert (one.stdout, two.stdout) == ("one", "two")
        assert len(house.multiplexer.panes) == 1


async def test_a_command_that_takes_too_long_goes_on_and_can_be_waited_for(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        commands = house.service.commands
        begun = await commands.execute("echo begun; read line; echo got $line", timeout_s=0.3)
        assert (begun.status, begun.exit_code) == ("running", None)
        await commands.send_text("word\n")
        done = await commands.wait_command(begun.command_id, 30)
        assert (done.status, done.exit_code, done.stdout.split("\n")[-1]) == ("done", 0, "got word")


async def test_a_running_command_is_interrupted(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        begun = await house.service.commands.execute("sleep 1000", timeout_s=0.1)
        done = await house.service.commands.interrupt_command(begun.command_id)
        assert (done.status, done.exit_code) == ("done", 130)


async def test_an_unknown_command_is_not_found(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        for wrong in ("cmd-1", "9:cmd-1", "1:cmd-99"):
            with pytest.raises(NotFound):
                await house.service.commands.wait_command(wrong)


async def test_output_of_a_command_is_read_in_parts(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        done = await house.service.commands.execute("seq 1 100")
        part = await house.service.commands.command_output(done.command_id, 10, 5)
        assert part.text == "11\n12\n13\n14\n15"
        assert (part.total_lines, part.next_offset) == (100, 15)
        assert (await house.service.commands.command_output(done.command_id, 98, 5)).next_offset is None


async def test_keys_drive_a_repl_whose_lines_are_not_judged_as_commands(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        commands = house.service.commands
        await commands.execute("python3 -q", timeout_s=0.0)
        assert (await commands.wait_for(">>> ", is_regex=False, timeout_s=30, since=0)).matched
        await commands.send_keys("rm = 6; rm * 7<Enter>")
        assert (await commands.wait_for("^42$", timeout_s=30, since=0)).matched
        await commands.send_keys("C-d")


async def test_waiting_does_not_see_what_was_there_before_nor_the_echo(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        commands = house.service.commands
        await commands.execute("echo needle")
        missed = await commands.wait_for("needle", timeout_s=0.2)
        assert (missed.matched, missed.reason) == (False, "timeout")
        assert "needle" in missed.text
        waiting = asyncio.create_task(commands.wait_for("nee(d)le", timeout_s=30))
        await asyncio.sleep(0)
        await commands.send_text("echo nee''dle\n")
        found = await waiting
        assert (found.matched, found.match, found.groups, found.text) == (True, "needle", ["d"], "needle")


async def test_a_mark_finds_what_came_between_two_calls(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        mark = (await house.service.screen.get_output()).mark
        await house.service.commands.execute("echo between")
        assert (await house.service.commands.wait_for("between", timeout_s=30, since=mark)).matched


async def test_waiting_ends_when_the_program_does(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(argv=["sh", "-c", "read x; exit 5"])
        waiting = asyncio.create_task(house.service.commands.wait_for("never", timeout_s=15))
        await asyncio.sleep(0)
        await house.service.commands.send_text("go\n")
        ended = await waiting
        assert (ended.matched, ended.reason) == (False, "exited 5")


async def test_values_out_of_range_are_refused(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        with pytest.raises(InvalidInput):
            await house.service.commands.execute("true", timeout_s=-1)
        with pytest.raises(InvalidInput):
            await house.service.commands.wait_for("x", timeout_s=1e9)
        with pytest.raises(InvalidInput):
            await house.service.commands.send_keys("")
