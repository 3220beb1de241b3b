"""What went through the proxy, as it is kept: newest flows in memory, all of them in a database, long bodies in files.

    engine ──► Recorder ──► Ring (memory) ────► log tail, entries, waits
                  ├───────► FlowStore (SQLite) ► search, summary, HAR after a restart and beyond the ring
                  └───────► BodyStore (files) ─► views, diff, replay

Everything here has its secrets: `proxy.api.traffic` redacts what callers read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import count, islice
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from dari.errors import NotFound
from dari.proxy.flow import Flow, WebSocketFrame
from dari.proxy.recording.bodies import MAX_BODY_BYTES, MAX_TOTAL_BYTES, BodyStore
from dari.proxy.recording.ring import MAX_FLOWS, Mark, Ring
from dari.proxy.recording.store import MAX_STORE_BYTES, FlowStore
from dari.text.redact import HIDING, Redactor


class Recorder:
    """Called on the event loop, for every request: nothing here waits, and nothing here may fail a request.

    With `next_id` a flow gets its id here, whatever the engine gave it: an engine that is started anew counts from
    one again, and ids must not come twice in the database.
    """

    def __init__(
        self,
        ring: Ring,
        store: FlowStore | None = None,
        bodies: BodyStore | None = None,
        next_id: Callable[[], int] | None = None,
    ) -> None:
        self.is_on = True
        """Whether new flows are recorded; those that began go on to their end."""
        self.keeps_bodies = True
        """Whether whole bodies go to disk; the flow's samples are the engine's."""
        self._ring = ring
        self._store = store
        self._bodies = bodies
        self._next_id = next_id
        self._open: dict[int, Flow] = {}
        if store is not None:
            store.last_seq = lambda: ring.last_seq
            store.open_flows = lambda: self.open_flows

    @property
    def spools(self) -> bool:
        """Whether `body` wants to be called."""
        return self._bodies is not None and self.keeps_bodies and self.is_on

    @property
    def open_flows(self) -> list[Flow]:
        """The requests that still run, the oldest first."""
        return list(self._open.values())

    def began(self, flow: Flow) -> None:
        """The request's head is known."""
        if flow.is_recorded and self.is_on:
            if self._next_id is not None:
                flow.id = self._next_id()
            self._open[flow.id] = flow
            self._ring.began(flow)

    def body(self, flow: Flow, from_client: bool, chunk: bytes) -> None:
        """The next bytes of a body, after framing and before content coding is undone."""
        if self._bodies is not None and self._open.get(flow.id) is flow:
            self._bodies.write(flow, from_client, chunk)

    def frame(self, flow: Flow, frame: WebSocketFrame) -> None:
        """A WebSocket message; the flow has it already, and a reader of the flow sees it there."""

    def finished(self, flow: Flow) -> None:
        """The response is complete, or there will be none; the engine changes the flow no more."""
        if self._open.get(flow.id) is flow:
            del self._open[flow.id]
        elif not self._is_news(flow):
            return
        if self._bodies is not None:
            self._bodies.finish(flow)
        self._ring.finished(flow)
        if self._store is not None:
            self._store.put(flow)

    def _is_news(self, flow: Flow) -> bool:
        """A flow that ends without having begun, such as a handshake that failed, is recorded at once."""
        slot = self._ring.get(flow.id)
        if not (flow.is_recorded and self.is_on) or (slot is not None and slot.flow is flow):
            return False
        if self._next_id is not None:
            flow.id = self._next_id()
        return True


P = ParamSpec("P")
T = TypeVar("T")

MAX_READERS = 2
_PRELOADED_FLOWS = 500
_IMPORT_BATCH_FLOWS = 2000


class RecordingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept where; the oldest goes first."""

    capacity: int = MAX_FLOWS
    store_bytes: int = MAX_STORE_BYTES
    bodies_bytes: int = MAX_TOTAL_BYTES
    body_bytes: int = MAX_BODY_BYTES


DEFAULT_LIMITS = RecordingLimits()


class Recording:
    """Made once, on the event loop that the engine runs on."""

    def __init__(
        self,
        store: FlowStore | None = None,
        bodies: BodyStore | None = None,
        redactor: Redactor = HIDING,
        capacity: int = MAX_FLOWS,
    ) -> None:
        self.ring = Ring(capacity)
        self.store = store
        self.bodies = bodies
        self.redactor = redactor
        if store is not None:
            self._preload(store)
        last_id = max(store.last_id() if store else 0, bodies.last_flow_id if bodies else 0)
        if bodies is not None and bodies.used_bytes:
            bodies.keep_only(store.ids() if store else set())
        self.next_id = count(last_id + 1).__next__
        """The id for the next flow; ids go on after a restart. The recorder gives them out."""
        self.recorder = Recorder(self.ring, store, bodies, self.next_id)
        self._readers = asyncio.Semaphore(MAX_READERS)

    @classmethod
    def open(cls, directory: Path, redactor: Redactor = HIDING, limits: RecordingLimits = DEFAULT_LIMITS) -> Recording:
        """A recording that is kept in a directory and found there again."""
        store = FlowStore(directory / "traffic.db", limits.store_bytes)
        bodies = BodyStore(directory / "bodies", limits.bodies_bytes, limits.body_bytes)
        return cls(store, bodies, redactor, limits.capacity)

    async def close(self) -> None:
        if self.store is not None:
            await asyncio.to_thread(self.store.close)

    async def read(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Decode, search or compare in a thread, two at a time: what one body becomes in memory has a bound."""
        async with self._readers:
            return await asyncio.to_thread(work, *arguments, **named)

    async def clear(self) -> tuple[list[tuple[int, Mark]], int]:
        """Forget everything that was recorded, on disk too; returns the log's marks and its number at that moment.

        Requests that still run appear again when they end. Unavailable when something could not be removed.
        """
        # All three at this moment: what ends while the disk is being cleared is kept.
        cleared = self.ring.clear(), self.ring.last_seq
        clearing = self.store.start_clear() if self.store is not None else None
        names = self.bodies.closed_names() if self.bodies is not None else []
        try:
            if self.bodies is not None:
                await asyncio.to_thread(self.bodies.remove, names)
        finally:
            if clearing is not None:
                try:
                    await asyncio.to_thread(clearing.wait)
                finally:
                    self.ring.note_clear()  # who followed has perhaps read the disk in between
        return cleared

    def note(self, message: str) -> None:
        """Add a plain line to the log."""
        self.ring.note(message)

    async def flow(self, flow_id: int) -> Flow:
        """The flow itself, with its secrets: for the engine, for replay and for what redacts it."""
        slot = self.ring.get(flow_id)
        if slot is not None:
            return slot.flow
        flow = await asyncio.to_thread(self.store.get, flow_id) if self.store is not None else None
        if flow is None:
            raise NotFound(f"no flow has the id {flow_id}", "find one with crab_traffic_search or crab_traffic_tail")
        return flow

    async def add(self, flows: Iterable[Flow]) -> None:
        """Record flows of elsewhere, such as a HAR file, as if they had just ended."""
        for number, flow in enumerate(flows, 1):
            self.ring.began(flow)
            self.ring.finished(flow)
            if self.store is not None:
                self.store.put(flow)
                if number % _IMPORT_BATCH_FLOWS == 0:  # or a long file would fill the queue
                    await asyncio.to_thread(self.store.flush)

    def _preload(self, store: FlowStore) -> None:
        """Bring the newest stored flows back into memory, under numbers that no reader waits for."""
        newest = [
            store.get(flow_id) for flow_id in islice(store.newest_ids(), min(_PRELOADED_FLOWS, self.ring.capacity))
        ]
        self.ring.last_seq = max(0, store.saved_seq - 5 * len(newest))
        for flow in reversed(newest):
            if flow is None:
                continue
            if flow.state != "done":
                flow.state, flow.error = "done", flow.error or "the proxy ended before this request did"
                store.put(flow)  # or it would run for ever once it is no longer among the newest
            self.ring.began(flow)
            self.ring.finished(flow)
        self.ring.last_seq = max(self.ring.last_seq, store.first_seq - 1)
