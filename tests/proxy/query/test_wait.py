from __future__ import annotations

import asyncio

import pytest

from dari.errors import InvalidInput
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import MAX_WAITING, wait_for
from dari.proxy.recording.ring import Ring
from tests.support.flows import flow


def record(ring: Ring, *numbers: int, status: int = 200) -> None:
    for number in numbers:
        ring.began(one := flow(number, status=status))
        ring.finished(one)


async def test_it_ends_with_the_flow_that_fits_and_not_before() -> None:
    ring = Ring()
    waiting = asyncio.create_task(wait_for(ring, TrafficFilter(status=404)))
    await asyncio.sleep(0)
    record(ring, 1, 2)
    await asyncio.sleep(0)
    assert not waiting.done()
    record(ring, 3, status=404)
    found = await waiting
    assert found is not None and found.id == 3 and ring.on_finished == []


async def test_a_request_that_only_began_does_not_count() -> None:
    ring = Ring()
    waiting = asyncio.create_task(wait_for(ring, TrafficFilter()))
    await asyncio.sleep(0)
    ring.began(one := flow(1))
    await asyncio.sleep(0)
    assert not waiting.done()
    ring.finished(one)
    assert await waiting is one


async def test_when_the_time_is_over_there_is_nothing_and_nobody_left_waiting() -> None:
    ring = Ring()
    assert await wait_for(ring, TrafficFilter(), timeout_s=0.01) is None and ring.on_finished == []


async def test_one_that_came_after_the_mark_is_found_at_once() -> None:
    ring = Ring()
    record(ring, 1, 2, 3)
    seq = ring.last_seq
    assert await wait_for(ring, TrafficFilter(), 0, after_seq=seq) is None
    record(ring, 4)
    by_seq, by_id = (
        await wait_for(ring, TrafficFilter(), 0, after_seq=seq),
        await wait_for(ring, TrafficFilter(), 0, after_id=3),
    )
    assert by_seq is not None and by_seq is by_id and by_seq.id == 4


async def test_without_a_mark_the_past_does_not_count() -> None:
    ring = Ring()
    record(ring, 1)
    assert await wait_for(ring, TrafficFilter(), timeout_s=0.01) is None


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    ring = Ring()
    waiting = asyncio.create_task(wait_for(ring, TrafficFilter()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ring.on_finished == []
    record(ring, 1)


async def test_two_who_wait_for_the_same_are_both_told() -> None:
    ring = Ring()
    both = [asyncio.create_task(wait_for(ring, TrafficFilter())) for _ in range(2)]
    await asyncio.sleep(0)
    record(ring, 1)
    assert [found and found.id for found in await asyncio.gather(*both)] == [1, 1]


async def test_a_condition_that_fails_is_the_waiters_trouble_and_not_the_requests() -> None:
    ring = Ring()
    waiting = asyncio.create_task(wait_for(ring, TrafficFilter(header_contains="x")))
    await asyncio.sleep(0)
    broken = flow(1)
    broken.request_headers = None  # type: ignore[assignment]
    ring.began(broken)
    ring.finished(broken)
    with pytest.raises(TypeError):
        await waiting


async def test_the_time_and_the_number_of_waits_are_bounded() -> None:
    ring = Ring()
    with pytest.raises(InvalidInput):
        await wait_for(ring, TrafficFilter(), timeout_s=301)
    many = [asyncio.create_task(wait_for(ring, TrafficFilter())) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(InvalidInput):
        await wait_for(ring, TrafficFilter())
    record(ring, 1)
    await asyncio.gather(*many)
