"""The next flow that fits a filter: tested as it finishes, off the event loop where a test may take long."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from dari.errors import InvalidInput, TimedOut
from dari.proxy.flow import Flow
from dari.proxy.query import filters
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import MAX_SCAN_S
from dari.proxy.recording.bodies import BodyStore
from dari.proxy.recording.ring import Ring, Slot
from dari.text.redact import HIDING, Redactor

Read = Callable[[Callable[[], Flow | None]], Awaitable[Flow | None]]
"""Runs work in a thread, as `asyncio.to_thread` and `Recording.read` do."""

MAX_TIMEOUT_S = 300.0
MAX_WAITING = 64


class Waited(msgspec.Struct, frozen=True):
    """What arrived. When it is nothing, every flow that finished up to `last_seq` was looked at."""

    flow: Flow | None
    last_seq: int


async def wait_for(
    ring: Ring,
    wanted: TrafficFilter,
    timeout_s: float = 30,
    *,
    after_id: int | None = None,
    after_seq: int | None = None,
    bodies: BodyStore | None = None,
    redactor: Redactor = HIDING,
    read: Read = asyncio.to_thread,
) -> Waited:
    """The first finished flow that fits, or nothing when the time is over.

    `after_id` and `after_seq` also accept one that finished before the call: of those that began after this id, or
    ended after this number of the log. Without them only what finishes from now on counts. TimedOut when the flows
    that came in time cannot be looked through within `MAX_SCAN_S` more.
    """
    if not 0 <= timeout_s <= MAX_TIMEOUT_S:
        raise InvalidInput(f"timeout must be 0 to {MAX_TIMEOUT_S:g} s, got {timeout_s:g}", "wait again when it is over")
    if len(ring.on_finished) >= MAX_WAITING:
        raise InvalidInput(f"{MAX_WAITING} waits are running", "end one of them first")
    arrivals = _Arrivals(ring, filters.test_of(filters.quick_part(wanted), bodies, redactor))
    test = filters.test_of(wanted, bodies, redactor) if filters.quick_part(wanted) != wanted else None
    until = asyncio.get_running_loop().time() + timeout_s
    with arrivals.listening(_seen(ring, after_id, after_seq)):
        try:
            async with asyncio.timeout_at(until + MAX_SCAN_S):
                return await _first(arrivals, test, until, read)
        except TimeoutError as error:
            raise TimedOut(
                f"the requests that finished could not be searched within {timeout_s + MAX_SCAN_S:g} s",
                "narrow the filter by host, method or status",
            ) from error


async def _first(arrivals: _Arrivals, test: filters.Test | None, until: float, read: Read) -> Waited:
    is_over = False
    while True:
        batch, last_seq = arrivals.take()
        found = batch[0] if batch else None
        if found is not None and test is not None:
            found = await read(partial(arrivals.search, batch, test))
        if found is not None or is_over:
            return Waited(found, last_seq)
        # What came before the time was over is looked at, and no more: a busy site would go on for ever.
        is_over = asyncio.get_running_loop().time() >= until or not await arrivals.wait(until)


class _Arrivals:
    """Finished flows that may be wanted, between the loop, which adds them, and the wait, which looks closer.

    Only the quick conditions are tested on the loop. Beyond the ring's capacity the oldest is dropped, as it is there.
    """

    def __init__(self, ring: Ring, is_candidate: filters.Test) -> None:
        self._ring = ring
        self._is_candidate = is_candidate
        self._flows: deque[Flow] = deque(maxlen=2 * ring.capacity)
        self._news = asyncio.Event()
        self._problem: Exception | None = None
        self._has_ended = threading.Event()

    @contextmanager
    def listening(self, seen: list[Slot]) -> Iterator[None]:
        """From now on, and of the past what was `seen`: nothing comes twice and nothing in between is missed."""
        self._ring.on_finished.append(self._add)
        try:
            for slot in seen:
                self._add(slot)
            yield
        finally:
            self._ring.on_finished.remove(self._add)
            self._has_ended.set()

    def take(self) -> tuple[list[Flow], int]:
        """What has come together, and the number of the log at this moment."""
        if self._problem is not None:
            raise self._problem
        taken = list(self._flows)
        self._flows.clear()
        self._news.clear()
        return taken, self._ring.last_seq

    async def wait(self, until: float) -> bool:
        """True as soon as something has come, False when the time is over."""
        try:
            async with asyncio.timeout_at(until):
                return await self._news.wait()
        except TimeoutError:
            return False

    def search(self, batch: list[Flow], test: filters.Test) -> Flow | None:
        """Called in a thread; ends early when nobody waits any more."""
        return next((flow for flow in batch if not self._has_ended.is_set() and test(flow)), None)

    def _add(self, slot: Slot) -> None:
        try:
            if self._is_candidate(slot.flow):
                self._flows.append(slot.flow)
                self._news.set()
        except Exception as error:  # belongs to the waiting caller, not to the request that woke it
            self._problem = error
            self._news.set()


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
