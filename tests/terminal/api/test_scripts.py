"""What scripts ask of a multiplexer, several at a time and in no good order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.errors import NotFound
from dari.process.spawner import SpawnedProcess
from dari.terminal.api.scripts import MAX_CHANNELS
from dari.terminal.multiplexer import LayoutChanged, PaneOpened
from dari.terminal.tmux.state import TmuxState
from tests.support.terminal_service import house_in


async def test_channels_that_nobody_waits_for_make_room(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        scripts = house.service.scripts
        for number in range(MAX_CHANNELS + 1):
            waiting = asyncio.create_task(scripts.wait(f"given up {number}"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        waiting = asyncio.create_task(scripts.wait("waited for"))
        await asyncio.sleep(0)
        for number in range(MAX_CHANNELS + 1):
            await scripts.signal(f"unheard {number}")
        async with asyncio.timeout(5):
            await scripts.wait(f"unheard {MAX_CHANNELS}")
            await scripts.signal("waited for")
            await waiting


async def test_all_who_wait_on_a_channel_are_woken_and_the_next_one_waits(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        scripts = house.service.scripts
        waiting = [asyncio.create_task(scripts.wait("done")) for _ in range(3)]
        await asyncio.sleep(0)
        await scripts.signal("done")
        await asyncio.wait_for(asyncio.gather(*waiting), 5)
        late = asyncio.create_task(scripts.wait("done"))
        await asyncio.sleep(0)
        assert not late.done()
        await scripts.signal("done")
        await asyncio.wait_for(late, 5)


async def test_a_pane_that_is_being_opened_is_in_no_list_yet(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        service = house.service
        await service.scripts.open_pane(["cat"], where="window")
        with house.multiplexer.changes.stream() as changes:
            opening = asyncio.create_task(service.scripts.open_pane(["cat"]))
            async with asyncio.timeout(20):
                async for change in changes:
                    overview = await service.views.overview()
                    shown = [pane for window in overview.windows for tab in window.tabs for pane in tab.panes]
                    assert sorted(shown) == sorted(pane.info.id for pane in overview.panes)
                    assert TmuxState(msgspec.to_builtins(overview)).here
                    assert (await service.panes.pane_info()).id in shown
                    if isinstance(change, PaneOpened):
                        break
            await opening


async def test_two_panes_are_opened_at_once_where_there_is_none(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        with house.multiplexer.changes.stream() as changes:
            first = asyncio.create_task(house.service.panes.spawn_pane())
            async with asyncio.timeout(20):
                async for change in changes:
                    if isinstance(change, LayoutChanged):
                        break
        second = await house.service.panes.spawn_pane()
        assert {(await first).id, second.id} == set(house.multiplexer.panes)


async def test_a_pane_that_is_closed_while_another_program_takes_its_place_leaves_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house_in(tmp_path) as house:
        multiplexer, spawner = house.multiplexer, house.multiplexer._keepers
        pane = await house.service.scripts.open_pane(["cat"], where="window")
        start, started = spawner.start, list[SpawnedProcess]()

        async def start_late(*words: Any, **more: Any) -> SpawnedProcess:
            await multiplexer.close(pane.id, force=True)
            started.append(await start(*words, **more))
            return started[0]

        monkeypatch.setattr(spawner, "start", start_late)
        with pytest.raises(NotFound):
            await asyncio.wait_for(house.service.scripts.respawn_pane(pane.id, ["cat"], force=True), 20)
        assert started[0].exit_code is not None
        assert multiplexer.panes == {}
