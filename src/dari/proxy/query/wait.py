"""Wait for a request that fits a filter, told by the event instead of asking again and again."""

from __future__ import annotations

import asyncio

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.query import filters
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.recording.bodies import BodyStore
from dari.proxy.recording.ring import Ring, Slot
from dari.proxy.redactor import HIDING, Redactor

MAX_TIMEOUT_S = 300.0
MAX_WAITING = 64


async def wait_for(
    ring: Ring,
    wanted: TrafficFilter,
    timeout_s: float = 30,
    *,
    after_id: int | None = None,
    after_seq: int | None = None,
    bodies: BodyStore | None = None,
    redactor: Redactor = HIDING,
) -> Flow | None:
    """The first finished flow that fits, or nothing when the time is over.

    `after_id` and `after_seq` also accept one that finished before the call: of those that began after this id, or
    ended after this number of the log. Without them only what finishes from now on counts.
    """
    if not 0 <= timeout_s <= MAX_TIMEOUT_S:
        raise InvalidInput(f"timeout must be 0 to {MAX_TIMEOUT_S:g} s, not {timeout_s:g}", "wait again when it is over")
    if len(ring.on_finished) >= MAX_WAITING:
        raise InvalidInput(f"{MAX_WAITING} waits are running", "end one of them first")
    test = filters.test_of(wanted, bodies, redactor)
    seen = _seen(ring, after_id, after_seq)
    for slot in seen:
        if test(slot.flow):
            return slot.flow
    return await _next(ring, test, timeout_s)


async def _next(ring: Ring, test: filters.Test, timeout_s: float) -> Flow | None:
    arrived: asyncio.Future[Flow] = asyncio.get_running_loop().create_future()

    def told(slot: Slot) -> None:
        if arrived.done():
            return
        try:
            if test(slot.flow):
                arrived.set_result(slot.flow)
        except Exception as error:  # belongs to whoever waits, not to the request that woke it
            arrived.set_exception(error)

    ring.on_finished.append(told)
    try:
        async with asyncio.timeout(timeout_s):
            return await arrived
    except TimeoutError:
        return None
    finally:
        ring.on_finished.remove(told)


def _seen(ring: Ring, after_id: int | None, after_seq: int | None) -> list[Slot]:
    """Finished flows after the mark, in the order in which they ended."""
    if after_id is None and after_seq is None:
        return []
    return [
        mark
        for first_seq, mark in ring.marks_after(after_seq or 0)
        if isinstance(mark, Slot)
        and first_seq == mark.end_seq
        and first_seq > (after_seq or 0)
        and mark.flow.id > (after_id or 0)
    ]
