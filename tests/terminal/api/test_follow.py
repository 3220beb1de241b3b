"""A command that is followed: nothing is lost to a reader that keeps asking, one that stays away holds nothing up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dari.errors import InvalidInput, NotFound, TimedOut
from dari.terminal.api import follow
from tests.support.terminal_service import house_in
from tests.support.waiting import until


def test_a_program_waits_for_a_reader_that_is_behind_and_goes_on_when_it_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house, asyncio.timeout(30):
            api = house.service.follow
            begun = await api.start("seq 1 600000; echo the end")
            record = house.multiplexer.find().commands.records[-1]
            first = await api.follow(begun.command_id)
            assert first.text.startswith("1\n2\n")
            assert first.lost_bytes == 0
            # Nobody asks any more: it is held for a moment, then runs to its end.
            await record.done.wait()
            assert record.capture.total_bytes > 4_000_000
            rest = await api.follow(begun.command_id, first.mark, first.seen)
            assert rest.text.startswith(f"{int(first.text.split()[-1]) + 1}\n")
            while rest.is_running:
                rest = await api.follow(begun.command_id, rest.mark, rest.seen)
            assert rest.text.endswith("the end\n")
            assert rest.exit_code == 0

    monkeypatch.setattr(follow, "AWAY_S", 0.3)
    asyncio.run(run())


def test_a_command_that_waits_for_its_reader_is_interrupted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house, asyncio.timeout(30):
            begun = await house.service.follow.start("yes")
            pane = house.multiplexer.find()
            record = pane.commands.records[-1]
            await until(lambda: record.capture.total_bytes > follow.BEHIND_BYTES)
            ended = await house.service.commands.interrupt_command(begun.command_id)
            assert (ended.status, ended.exit_code) == ("done", 130)
            assert (await pane.execute("echo free")).output == "free"

    monkeypatch.setattr(follow, "AWAY_S", 60.0)
    asyncio.run(run())


def test_a_command_that_ignores_an_interrupt_waits_for_its_reader_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house, asyncio.timeout(30):
            await house.service.follow.start("(trap '' INT; exec yes)")
            pane = house.multiplexer.find()
            record = pane.commands.records[-1]
            await until(lambda: record.capture.total_bytes > follow.BEHIND_BYTES)
            result = await pane.interrupt(record.id, timeout_s=0.1)
            assert result is not None and result.status == "running"
            with pytest.raises(TimedOut):
                await pane.wait_for("y", timeout_s=0.3)

    monkeypatch.setattr(follow, "AWAY_S", 60.0)
    asyncio.run(run())


def test_an_unknown_command_and_an_impossible_time_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with house_in(tmp_path) as house:
            api = house.service.follow
            with pytest.raises(NotFound):
                await api.follow("9:cmd-1")
            with pytest.raises(InvalidInput):
                await api.follow("9:cmd-1", timeout_s=-1)

    asyncio.run(run())
