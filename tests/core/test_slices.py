"""Long work in slices: in order, with turns in between, and the end after everything else."""

from __future__ import annotations

import asyncio

import pytest

from dari.core.slices import Sliced, pieces, sliced
from tests.support.heartbeat import Heartbeat


def test_pieces_are_the_whole_in_order() -> None:
    data = bytes(range(256)) * 5
    cut = list(pieces(data, 100))
    assert b"".join(cut) == data and max(map(len, cut)) == 100
    assert list(pieces(b"", 100)) == []


async def test_items_come_in_order_with_turns_in_between() -> None:
    async with Heartbeat() as heartbeat:
        seen = [item async for item in sliced(range(50), slice_s=0)]
    assert seen == list(range(50))
    assert heartbeat.beats >= 50


async def test_what_was_read_is_handled_in_order_and_nothing_is_read_meanwhile() -> None:
    seen: list[int] = []
    calls: list[str] = []
    work = Sliced(seen.append, lambda: calls.append("pause"), lambda: calls.append("resume"), slice_s=0)
    work.take(range(10))
    assert seen == [0] and calls == ["pause"] and work
    work.take(range(10, 12))  # read before the pause came through
    work.then(lambda: calls.append("end"))
    await work.handled()
    assert seen == list(range(12))
    await asyncio.sleep(0)
    assert calls == ["pause", "resume", "end"] and not work


async def test_what_fits_into_a_slice_is_handled_at_once() -> None:
    seen: list[int] = []
    calls: list[str] = []
    work = Sliced(seen.append, lambda: calls.append("pause"), lambda: calls.append("resume"), slice_s=60)
    work.take(range(10))
    assert seen == list(range(10)) and calls == []


async def test_the_rest_can_be_handed_to_somebody_else() -> None:
    seen: list[int] = []
    work = Sliced(seen.append, lambda: None, lambda: None, slice_s=0)
    work.take(range(5))
    assert work.rest() == [1, 2, 3, 4]
    await asyncio.sleep(0)
    assert seen == [0] and not work


async def test_an_error_in_one_does_not_keep_those_behind_it() -> None:
    seen: list[int] = []

    def handle(item: int) -> None:
        seen.append(item)
        if item == 0:
            raise ValueError("no")

    work = Sliced(handle, lambda: None, lambda: None, slice_s=60)
    with pytest.raises(ValueError, match="no"):
        work.take(range(4))
    await work.handled()
    assert seen == [0, 1, 2, 3]
