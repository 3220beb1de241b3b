"""Frames: everything first, then only what changed; who does not ask any more is forgotten."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable
from pathlib import Path

import pytest

from dari.errors import NotFound
from dari.terminal.api.attach import AttachApi
from dari.terminal.multiplexer import Change, LayoutChanged, PaneRenamed
from dari.terminal.viewers.frames import ViewFrame
from tests.support.terminal_service import House, house_in


async def _frame(api: AttachApi, known: int = 0, viewer: str = "a", cols: int = 60, rows: int = 20) -> ViewFrame:
    return await asyncio.wait_for(api.next_frame(viewer, cols, rows, known), 20)


async def _until(api: AttachApi, text: str, frame: ViewFrame, viewer: str = "a") -> ViewFrame:
    while not any(text in row.text for row in frame.changed):
        frame = await _frame(api, frame.version, viewer)
    return frame


async def _open(house: House, *argv: str) -> str:
    return (await house.service.scripts.open_pane(list(argv), where="window")).id


def test_the_first_frame_is_everything_and_the_next_only_what_changed(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api = house.service.attach
            script = tmp_path / "script.sh"
            script.write_text("stty -echo; echo ready; exec cat")
            await _open(house, "sh", str(script))
            frame = await _frame(api)
            assert frame.is_whole
            assert len(frame.changed) == 20
            frame = await _until(api, "ready", frame)
            await api.type_bytes("a", b64encode(b"news\r").decode())
            frame = await _until(api, "news", await _frame(api, frame.version))
            assert not frame.is_whole
            assert [row.row for row in frame.changed] == [1]

    asyncio.run(run())


def test_a_viewer_that_missed_a_frame_gets_everything(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api = house.service.attach
            await _open(house, "cat")
            frame = await _frame(api)
            again = await _frame(api, frame.version - 1)
            assert len(again.changed) == 20

    asyncio.run(run())


def test_a_window_is_as_large_as_its_smallest_viewer_and_grows_when_that_one_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api = house.service.attach
            pane = await _open(house, "cat")
            await _frame(api, viewer="large", cols=90, rows=30)
            await _frame(api, viewer="small", cols=50, rows=40)
            assert house.multiplexer.windows.size_of(pane) == (50, 30)
            assert api.count(house.multiplexer.windows.place(pane)[0].id) == 2
            await api.leave("small")
            assert house.multiplexer.windows.size_of(pane) == (90, 30)

    asyncio.run(run())


def test_a_viewer_that_hangs_up_is_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api = house.service.attach
            await _open(house, "cat")
            frame = await _frame(api)
            waiting = asyncio.create_task(api.next_frame("a", 60, 20, frame.version))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            with pytest.raises(NotFound):
                await api.scroll("a", 1)

    asyncio.run(run())


def test_the_end_of_the_last_pane_is_the_last_frame(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api = house.service.attach
            pane = await _open(house, "cat")
            frame = await _frame(api)
            await house.multiplexer.close(pane, force=True)
            while not frame.is_over:
                frame = await _frame(api, frame.version)

    asyncio.run(run())


def test_a_pane_of_a_script_goes_away_with_its_program_unless_it_is_to_remain(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            scripts, panes = house.service.scripts, house.multiplexer.panes
            kept = await _open(house, "sh", "-c", "read x")
            gone = await _open(house, "sh", "-c", "read x")
            await scripts.keep_note(f"%{kept}", "remain-on-exit", "on")
            with house.multiplexer.changes.stream() as changes:
                for pane in (kept, gone):
                    await panes[pane].write(b"\r")
                async with asyncio.timeout(20):
                    async for _ in changes:
                        if gone not in panes and not panes[kept].is_alive:
                            break

    asyncio.run(run())


def test_a_viewer_is_told_of_names_focus_and_layout_by_an_event(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            service, api = house.service, house.service.attach
            told: list[Change] = []
            first = await _open(house, "cat")
            second = (await service.scripts.open_pane(["cat"], direction="horizontal")).id
            house.multiplexer.changes.subscribe(lambda change: told.append(change))
            frame = await _frame(api)

            async def after(act: Awaitable[object]) -> ViewFrame:
                told.clear()
                waiting = asyncio.create_task(_frame(api, frame.version))
                await asyncio.sleep(0)
                await act
                return await waiting

            frame = await after(service.panes.rename_pane("server", first))
            assert PaneRenamed(first) in told
            assert [pane.name for pane in frame.panes] == ["server", "cat"]
            frame = await after(service.panes.focus_pane(first))
            assert told == [LayoutChanged(first)]
            assert (frame.focused, frame.changed) == (first, [])
            frame = await after(service.views.push_border("right", first, 5))
            assert LayoutChanged(first) in told
            assert frame.is_whole
            frame = await after(service.panes.zoom_pane(first))
            assert [pane.id for pane in frame.panes] == [first]
            frame = await after(service.panes.zoom_pane(first))
            assert len(frame.panes) == 2
            frame = await after(service.panes.close_pane(second, force=True))
            assert [pane.id for pane in frame.panes] == [first]
            told.clear()
            await service.panes.focus_pane(first)
            assert told == []  # nothing changed

    asyncio.run(run())


def test_a_picture_that_is_never_finished_is_shown_although_another_pane_prints(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api, scripts = house.service.attach, house.service.scripts
            held, busy = tmp_path / "held.sh", tmp_path / "busy.sh"
            held.write_text("stty -echo; echo ready; read x; printf '\\033[?2026hpicture'; exec cat")
            busy.write_text("while :; do n=$((n + 1)); echo $n; sleep 0.02; done")
            pane = await _open(house, "sh", str(held))
            frame = await _until(api, "ready", await _frame(api))
            await scripts.open_pane(["sh", str(busy)])
            frame = await _until(api, "100", frame)
            await house.multiplexer.panes[pane].write(b"\r")
            async with asyncio.timeout(15):
                await _until(api, "picture", frame)

    asyncio.run(run())


def test_keys_for_a_program_that_does_not_read_hold_up_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api = house.service.attach
            script = tmp_path / "deaf.sh"
            script.write_text("stty raw -echo; printf ready; exec sleep 1000")
            await _open(house, "sh", str(script))
            await _until(api, "ready", await _frame(api))
            async with asyncio.timeout(5):  # the wait for a program that does not read is longer
                await api.type_bytes("a", b64encode(b"x" * 150_000).decode())
                await api.type_bytes("a", b64encode(b"\x03").decode())

    asyncio.run(run())


def test_copy_mode_ends_with_the_screen_that_it_looked_at(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api, scripts = house.service.attach, house.service.scripts
            pane = await _open(house, "sh", "-c", "seq 1 200; exec cat")
            frame = await _until(api, "200", await _frame(api))
            await api.use_copy_mode("a", "move", rows=-1000)
            await api.use_copy_mode("a", "select")
            frame = await _until(api, "1", await _frame(api, frame.version))
            assert frame.is_copying
            await scripts.respawn_pane(pane, ["sh", "-c", "echo new; exec cat"], force=True)
            frame = await _until(api, "new", frame)
            assert not frame.is_copying
            assert frame.scrolled == 0
            copied = await api.use_copy_mode("a", "copy")
            assert copied.text == ""

    asyncio.run(run())
