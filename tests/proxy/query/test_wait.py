from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import count

import pytest

from dari.errors import InvalidInput, TimedOut
from dari.proxy.flow import Flow
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.wait import MAX_WAITING, wait_for
from dari.proxy.recording.ring import Ring
from dari.text.redact import Redactor
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
    found = (await waiting).flow
    assert found is not None and found.id == 3 and ring.on_finished == []


async def test_a_request_that_only_began_does_not_count() -> None:
    ring = Ring()
    waiting = asyncio.create_task(wait_for(ring, TrafficFilter()))
    await asyncio.sleep(0)
    ring.began(one := flow(1))
    await asyncio.sleep(0)
    assert not waiting.done()
    ring.finished(one)
    assert (await waiting).flow is one


async def test_when_the_time_is_over_there_is_nothing_and_nobody_left_waiting() -> None:
    ring = Ring()
    assert (await wait_for(ring, TrafficFilter(), timeout_s=0.01)).flow is None and ring.on_finished == []


async def test_one_that_came_after_the_mark_is_found_at_once() -> None:
    ring = Ring()
    record(ring, 1, 2, 3)
    seq = ring.last_seq
    assert (await wait_for(ring, TrafficFilter(), 0, after_seq=seq)).flow is None
    record(ring, 4)
    by_seq, by_id = (
        (await wait_for(ring, TrafficFilter(), 0, after_seq=seq)).flow,
        (await wait_for(ring, TrafficFilter(), 0, after_id=3)).flow,
    )
    assert by_seq is not None and by_seq is by_id and by_seq.id == 4


async def test_without_a_mark_the_past_does_not_count() -> None:
    ring = Ring()
    record(ring, 1)
    assert (await wait_for(ring, TrafficFilter(), timeout_s=0.01)).flow is None


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
    assert [found.flow and found.flow.id for found in await asyncio.gather(*both)] == [1, 1]


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


class Slow(Redactor):
    """Reads a body only after the event loop has said so: on the loop itself it would wait for ever."""

    def __init__(self) -> None:
        self.is_reading, self.may_read = threading.Event(), threading.Event()
        self.read: list[str] = []

    def body(self, text: str, mime: str) -> str:
        self.is_reading.set()
        assert self.may_read.wait(20), "the event loop waits for this test of a body"
        self.read.append(text)
        return text


BODY = TrafficFilter(host="api.test", body_contains="ok")


async def test_bodies_of_the_past_are_read_beside_the_event_loop() -> None:
    ring, redactor = Ring(), Slow()
    record(ring, 1)
    waiting = asyncio.create_task(wait_for(ring, BODY, 0, after_seq=0, redactor=redactor))
    async with asyncio.timeout(20):
        assert await asyncio.to_thread(redactor.is_reading.wait, 20)
        redactor.may_read.set()
        found = (await waiting).flow
    assert found is not None and found.id == 1


async def test_what_ends_while_the_past_is_searched_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, redactor = Ring(), Slow()
    ring.began(past := flow(1, response=b"ok, but hidden"))
    ring.finished(past)
    monkeypatch.setattr(redactor, "body", lambda text, mime: Slow.body(redactor, text, mime).replace("ok, but", ""))
    waiting = asyncio.create_task(wait_for(ring, BODY, after_seq=0, redactor=redactor))
    async with asyncio.timeout(20):
        assert await asyncio.to_thread(redactor.is_reading.wait, 20)
        record(ring, 2)
        redactor.may_read.set()
        found = (await waiting).flow
    assert found is not None and found.id == 2 and ring.on_finished == []


async def test_a_body_that_arrives_is_read_beside_the_event_loop() -> None:
    ring, redactor = Ring(), Slow()
    waiting = asyncio.create_task(wait_for(ring, BODY, redactor=redactor))
    await asyncio.sleep(0)
    record(ring, 1)
    async with asyncio.timeout(20):
        assert await asyncio.to_thread(redactor.is_reading.wait, 20)
        redactor.may_read.set()
        found = (await waiting).flow
    assert found is not None and found.id == 1


async def test_bodies_of_flows_that_the_cheap_conditions_leave_out_are_not_read() -> None:
    ring, redactor = Ring(), Slow()
    redactor.may_read.set()
    ring.began(other := flow(1, "http://other.test/", response=b"ok elsewhere"))
    ring.finished(other)
    record(ring, 2)
    found = (await wait_for(ring, BODY, 0, after_seq=0, redactor=redactor)).flow
    assert found is not None and found.id == 2 and redactor.read == ['{"ok":true}']


async def test_a_past_that_takes_too_long_to_search_is_an_error_and_not_an_empty_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dari.proxy.query.wait.MAX_SCAN_S", 0.01)
    ring, redactor = Ring(), Slow()
    record(ring, 1, 2, 3)
    with pytest.raises(TimedOut):
        await wait_for(ring, BODY, 0, after_seq=0, redactor=redactor)
    redactor.may_read.set()
    assert ring.on_finished == []


async def test_a_wait_on_a_busy_site_ends_and_the_next_goes_on_with_what_was_not_looked_at() -> None:
    ring, ids = Ring(), count(1)
    looked_at: list[int] = []

    async def read(work: Callable[[], Flow | None]) -> Flow | None:
        looked_at.append(ring.last_seq)
        record(ring, next(ids))
        return work()

    record(ring, next(ids))
    waited = await wait_for(ring, TrafficFilter(body_contains="nowhere"), 0, after_seq=0, read=read)
    assert waited.flow is None and waited.last_seq == looked_at[-1] < ring.last_seq
    rest = (await wait_for(ring, TrafficFilter(), 0, after_seq=waited.last_seq)).flow
    assert rest is not None and rest.id == next(ids) - 1
