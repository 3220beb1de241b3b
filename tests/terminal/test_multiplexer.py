"""How panes end, and how they are counted."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from dari.errors import Conflict
from dari.terminal.policy.config import Security
from tests.support.terminal_service import house_in
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV"])
async def test_a_program_that_died_of_a_signal_says_so_as_a_shell_does(name: str, tmp_path: Path) -> None:
    number = signal.Signals[name]
    async with house_in(tmp_path) as house:
        service = house.service
        opened = await service.panes.spawn_pane(argv=["sleep", "1000"])
        events = []
        house.multiplexer.panes[opened.id].events.subscribe(events.append)
        os.kill(opened.pid, number)
        assert await service.commands.wait_exit(opened.id) == 128 + number
        assert (await service.panes.pane_info(opened.id)).exit_code == 128 + number
        assert (await service.panes.list_panes()).panes[0].exit_code == 128 + number
        assert (await service.screen.get_pane_state(opened.id)).exit_code == 128 + number
        assert [event.code for event in events if hasattr(event, "code")] == [128 + number]
        found = await service.commands.wait_for("never", opened.id)
        assert found.reason == f"exited {128 + number}"


async def test_a_command_whose_shell_is_killed_ends_as_the_shell_did(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        opened = await house.service.panes.spawn_pane()
        waiting = asyncio.create_task(house.service.commands.execute("sleep 1000"))
        await until(lambda: house.multiplexer.panes[opened.id].commands.current)
        os.kill(opened.pid, signal.SIGKILL)
        ended = await waiting
        assert (ended.status, ended.exit_code) == ("done", 137)


async def test_panes_are_counted_as_they_are_listed_and_ended_ones_make_room(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(max_panes=3)) as house:
        panes = house.service.panes
        first = await panes.spawn_pane(argv=["true"])
        await house.service.commands.wait_exit(first.id)
        for _ in range(3):
            await panes.spawn_pane()
            assert len((await panes.list_panes()).panes) <= 3
        listed = (await panes.list_panes()).panes
        assert len(listed) == 3
        assert all(pane.is_alive for pane in listed)
        with pytest.raises(Conflict):
            await panes.spawn_pane()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_an_ended_pane_that_makes_room_leaves_no_descriptor_no_record_and_no_process(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(max_panes=2)) as house:
        panes, multiplexer = house.service.panes, house.multiplexer
        background = "trap '' HUP; sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > child"
        first = await panes.spawn_pane(argv=["sh", "-c", background], cwd=str(tmp_path))
        await house.service.commands.wait_exit(first.id)
        child = int((tmp_path / "child").read_text())
        assert is_running(child)
        opened = [multiplexer.panes[first.id]]
        for _ in range(5):
            made = await panes.spawn_pane(argv=["true"])
            opened.append(multiplexer.panes[made.id])
            await house.service.commands.wait_exit(made.id)
        forgotten = [pane for pane in opened if pane.id not in multiplexer.panes]
        assert len(forgotten) == 4
        await until(lambda: not any(pane._pty.is_open for pane in forgotten))
        await until(lambda: not is_running(child))
        kept = {pane.pid for pane in multiplexer.panes.values()}
        assert set(multiplexer._keepers._kept) <= kept


async def test_leaving_waits_for_forgotten_panes_to_be_closed(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(max_panes=1)) as house:
        first = await house.service.panes.spawn_pane(argv=["true"])
        pane = house.multiplexer.panes[first.id]
        await house.service.commands.wait_exit(first.id)
        await house.service.panes.spawn_pane(argv=["sleep", "1000"])
    assert not pane._pty.is_open


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
