"""Panes: opened, found, arranged, closed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dari.errors import Conflict, InvalidInput, NotFound
from dari.terminal.api import panes as panes_module
from dari.terminal.multiplexer import PaneChanged
from dari.terminal.panes.events import Bell
from dari.terminal.policy.config import Security
from tests.support.terminal_service import house_in
from tests.support.waiting import until


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_pane_tells_its_id_process_and_directory(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        info = await house.service.panes.spawn_pane(cwd=str(tmp_path))
        assert info.id == "1"
        assert is_running(info.pid)
        assert info.cwd == str(tmp_path)
        assert (info.shell, info.is_focused, info.is_alive) == ("bash", True, True)


async def test_splits_share_the_window_and_zoom_fills_it(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        panes = house.service.panes
        await panes.spawn_pane(name="left")
        await panes.spawn_pane("horizontal", name="right")
        await panes.spawn_pane("vertical", name="below")
        left, right, below = (await panes.list_panes()).panes
        assert left.cols + 1 + right.cols == 200
        assert (right.cols, right.rows + 1 + below.rows) == (below.cols, 50)
        assert (right.left, right.top, below.top) == (left.cols + 1, 0, right.rows + 1)
        zoomed = await panes.zoom_pane("right")
        assert (zoomed.cols, zoomed.rows, zoomed.is_zoomed, zoomed.is_focused) == (200, 50, True, True)
        back = await panes.zoom_pane("right")
        assert (back.cols, back.rows, back.is_zoomed) == (right.cols, right.rows, False)


async def test_the_program_in_a_pane_learns_its_size(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        await house.service.panes.spawn_pane("horizontal")
        resized = await house.service.panes.resize_pane("1", 70, 50)
        assert (resized.success, resized.cols, resized.rows) == (True, 70, 50)
        assert (await house.service.commands.execute("stty size", "1")).stdout == "50 70"
        assert (await house.service.panes.pane_info("2")).cols == 129


async def test_a_pane_alone_gets_any_size(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        resized = await house.service.panes.resize_pane("", 81, 33)
        assert (resized.success, resized.cols, resized.rows) == (True, 81, 33)
        with pytest.raises(InvalidInput):
            await house.service.panes.resize_pane("", 0, 0)


async def test_when_there_is_no_room_left_a_tab_is_opened(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        for _ in range(6):
            await house.service.panes.spawn_pane("horizontal")
        listed = (await house.service.panes.list_panes()).panes
        assert len({pane.tab_id for pane in listed}) > 1
        assert min(pane.cols for pane in listed) >= 40


async def test_closing_a_pane_gives_its_room_and_the_focus_back(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        panes = house.service.panes
        await panes.spawn_pane()
        second = await panes.spawn_pane("horizontal")
        assert (await panes.close_pane(second.id)).success
        (first,) = (await panes.list_panes()).panes
        assert (first.id, first.cols, first.is_focused) == ("1", 200, True)
        assert not is_running(second.pid)


async def test_a_busy_pane_is_closed_by_force_only(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        await house.service.commands.execute("sleep 1000", timeout_s=0.05)
        pane = house.multiplexer.find()
        await until(lambda: (found := pane.foreground()) is not None and found.name == "sleep")  # past its exec
        with pytest.raises(Conflict, match="sleep"):
            await house.service.panes.close_pane("1", force=False)
        assert (await house.service.panes.close_pane("1")).success


async def test_an_unknown_pane_names_the_tool_that_lists_them(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        with pytest.raises(NotFound) as none:
            house.multiplexer.find()
        assert "crux_create_pane" in none.value.hint
        await house.service.panes.spawn_pane()
        with pytest.raises(NotFound) as unknown:
            await house.service.panes.focus_pane("77")
        assert "crux_list_panes" in unknown.value.hint


async def test_a_pane_is_found_by_its_name_unless_two_have_it(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(name="backend")
        assert house.multiplexer.find("backend").id == "1"
        await house.service.panes.spawn_pane(name="backend")
        with pytest.raises(InvalidInput, match="backend"):
            house.multiplexer.find("backend")
        await house.service.panes.rename_pane("tests", "2")
        assert house.multiplexer.find("tests").id == "2"


async def test_more_panes_than_max_panes_are_refused_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(max_panes=2)) as house:
        await house.service.panes.spawn_pane()
        await house.service.panes.spawn_pane()
        with pytest.raises(Conflict, match="max_panes"):
            await house.service.panes.spawn_pane()
        assert len(house.multiplexer.windows.all[0].tabs[0].tree.panes) == 2


async def test_a_pane_that_cannot_start_leaves_no_place_behind(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        with pytest.raises(InvalidInput):
            await house.service.panes.spawn_pane(cwd=str(tmp_path / "missing"))
        with pytest.raises(NotFound):
            await house.service.panes.spawn_pane(argv=["/no/such/program"])
        assert house.multiplexer.windows.all == ()


async def test_the_last_screen_of_a_shell_that_exits_stays_readable(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(argv=["sh", "-c", "echo last words; exit 3"])
        assert await house.service.commands.wait_exit("1", 10) == 3
        (info,) = (await house.service.panes.list_panes()).panes
        assert (info.is_alive, info.exit_code) == (False, 3)
        assert (await house.service.screen.get_output("1")).text == "last words"
        assert house.multiplexer.live_panes == 0


async def test_a_command_given_with_the_pane_runs_in_its_shell(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(command="echo $((40 + 2)) made")
        waited = await house.service.commands.wait_for("42 made", timeout_s=30, since=0)
        assert waited.matched
        assert (await house.service.commands.execute("echo next")).stdout == "next"


async def test_panes_are_arranged_by_presets(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        for _ in range(3):
            await house.service.panes.spawn_pane("horizontal")
        arranged = (await house.service.panes.select_layout("even-vertical")).panes
        assert {pane.cols for pane in arranged} == {200}
        assert sum(pane.rows for pane in arranged) == 48


async def test_changes_that_follow_each_other_are_answered_together_also_to_a_caller_who_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a pane prints, a follower is behind whenever it asks again: without a pause it would ask without end."""
    monkeypatch.setattr(panes_module, "CHANGES_GATHER_S", 1000.0)
    async with house_in(tmp_path) as house:
        api, told = house.service.changes, house.multiplexer.changes
        start = (await api.changes()).version
        told.publish(PaneChanged("1", Bell()))
        behind = asyncio.create_task(api.changes(start, timeout_s=0.5))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not behind.done()
        told.publish(PaneChanged("2", Bell()))
        answer = await behind
        assert (answer.version, answer.changed) == (start + 2, ["1", "2"])
        assert (await api.changes()).version == answer.version, "0 is answered at once"
