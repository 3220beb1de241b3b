"""Everything that went through the proxy: recorded, kept, and given out to whoever asks.

    engine ──► Recorder ──► Ring (memory) ──► log tail, entries, waits
                  ├───────► Store (SQLite) ─► search, summary, HAR after a restart and beyond the ring
                  └───────► Bodies (files) ─► views, diff, replay

What an agent reads passes the redactor, unless `reveal` is given; what is stored or replayed never does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import msgspec

from dari.errors import InvalidInput, NotFound
from dari.proxy import replay as replays
from dari.proxy.flow import Flow
from dari.proxy.formats import diff, entries, har, har_import, log, snippets
from dari.proxy.formats.entries import EntryFound, EntryOptions, EntryPage
from dari.proxy.query import summary as summaries
from dari.proxy.query import views, wait
from dari.proxy.query.fields import row_of, rows_fields
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import Scan, SearchResult, Sources, search
from dari.proxy.recording.bodies import MAX_BODY_BYTES, MAX_TOTAL_BYTES, BodyStore
from dari.proxy.recording.recorder import Recorder
from dari.proxy.recording.ring import MAX_FLOWS, Ring, Slot
from dari.proxy.recording.store import MAX_STORE_BYTES, FlowStore
from dari.proxy.redactor import HIDING, REVEALED, Redactor

P = ParamSpec("P")
T = TypeVar("T")

EVERYTHING = TrafficFilter()
MAX_READERS = 2
_PRELOADED = 500
_EXPORT_S = 60.0
_IMPORT_BATCH = 2000


class RecordingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept where; the oldest goes first."""

    capacity: int = MAX_FLOWS
    store_bytes: int = MAX_STORE_BYTES
    bodies_bytes: int = MAX_TOTAL_BYTES
    body_bytes: int = MAX_BODY_BYTES


class Traffic:
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
    def open(cls, directory: Path, redactor: Redactor = HIDING, limits: RecordingLimits = RecordingLimits()) -> Traffic:  # noqa: B008
        """Traffic that is kept in a directory and found there again."""
        store = FlowStore(directory / "traffic.db", limits.store_bytes)
        bodies = BodyStore(directory / "bodies", limits.bodies_bytes, limits.body_bytes)
        return cls(store, bodies, redactor, limits.capacity)

    async def close(self) -> None:
        if self.store is not None:
            await asyncio.to_thread(self.store.close)

    async def apart(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Decode, search or compare in a thread, two at a time: what one body becomes in memory has a bound."""
        async with self._readers:
            return await asyncio.to_thread(work, *arguments, **named)

    async def clear(self) -> log.Cleared:
        """Forget everything that was recorded, on disk too; requests that still run appear again when they end."""
        last_id = max((flow.id for flow in islice(self.ring.newest(), 1)), default=0)
        cleared = log.clear(self.ring)
        if self.store is not None:
            store_last = await asyncio.to_thread(self.store.last_id)
            await asyncio.to_thread(self.store.clear, max(last_id, store_last))
        if self.bodies is not None:
            self.bodies.clear()
        return cleared

    def note(self, message: str) -> None:
        """Add a plain line to the log."""
        self.ring.note(message)

    async def log(self, after_seq: int = 0, limit: int = 200, *, reveal: bool = False) -> log.LogPage:
        """`logs.tail`: records after `after_seq`, oldest first."""
        found = log.select(self.ring, after_seq, limit)
        return await self.apart(log.render, found, after_seq, self._shown(reveal))

    async def entries(
        self,
        after_seq: int = 0,
        limit: int = 400,
        max_entries: int = 100,
        look: EntryOptions = EntryOptions(),  # noqa: B008 (frozen)
        *,
        reveal: bool = False,
    ) -> EntryPage:
        """`crab_traffic_tail`: whole requests, newest first."""
        choice = entries.select(self.ring, after_seq, limit, max_entries)
        return await self.apart(entries.render, choice, look, self._shown(reveal))

    async def entry(
        self,
        request_id: str,
        look: EntryOptions = EntryOptions(),  # noqa: B008 (frozen)
        *,
        reveal: bool = False,
    ) -> EntryFound:
        """`crab_traffic_get`: one request, also one that only the database still has."""
        number = int(request_id) if request_id.isascii() and request_id.isdigit() and len(request_id) < 19 else 0
        try:
            flow = await self.flow(number)
        except NotFound as error:
            raise NotFound(f"request_id not found in current log window: {request_id}", error.hint) from error
        slot = self.ring.get(flow.id) or Slot.of(flow)
        found = entries.entry(slot, look, self._shown(reveal))
        return EntryFound(self.ring.last_seq, log.count_of(slot), str(flow.id), found)

    async def flow(self, flow_id: int) -> Flow:
        """The record itself, secrets and all: for the engine and for replay, not for an agent."""
        slot = self.ring.get(flow_id)
        if slot is not None:
            return slot.flow
        flow = await asyncio.to_thread(self.store.get, flow_id) if self.store is not None else None
        if flow is None:
            raise NotFound(f"no flow {flow_id}", "find one with crab_traffic_search or crab_traffic_tail")
        return flow

    async def get(self, flow_id: int, fields: list[str], *, reveal: bool = False) -> dict[str, Any]:
        """The named fields of one flow."""
        names = rows_fields(fields)
        flow = await self.flow(flow_id)
        return await self.apart(row_of, flow, names, self.bodies, self._shown(reveal))

    async def search(
        self,
        wanted: TrafficFilter = EVERYTHING,
        *,
        limit: int = 50,
        cursor: str | None = None,
        fields: list[str] | None = None,
        token_budget: int = 8_000,
        reveal: bool = False,
    ) -> SearchResult:
        """One page of flows, newest first."""

        def run() -> SearchResult:
            return search(sources, wanted, limit=limit, cursor=cursor, fields=fields, token_budget=token_budget)

        sources = self._sources(reveal)
        return await self.apart(run)

    async def summary(
        self, wanted: TrafficFilter = EVERYTHING, groups: int = summaries.MAX_GROUPS, *, reveal: bool = False
    ) -> summaries.Summary:
        """Counts, errors and durations by host and path template."""
        return await self.apart(summaries.summarize, self._sources(reveal), wanted, groups)

    async def wait(
        self,
        wanted: TrafficFilter = EVERYTHING,
        timeout_s: float = 30,
        *,
        after_id: int | None = None,
        after_seq: int | None = None,
        reveal: bool = False,
    ) -> Flow | None:
        """The next finished flow that fits; nothing when the time is over."""
        return await wait.wait_for(
            self.ring,
            wanted,
            timeout_s,
            after_id=after_id,
            after_seq=after_seq,
            bodies=self.bodies,
            redactor=self._shown(reveal),
        )

    async def body(
        self,
        flow_id: int,
        direction: Literal["request", "response"],
        *,
        reveal: bool = False,
        start: int = 0,
        end: int | None = None,
        max_chars: int = views.MAX_CHARS,
    ) -> views.BodyView:
        """A decoded body; `start` and `end` count its decoded bytes."""
        flow = await self.flow(flow_id)

        def run() -> views.BodyView:
            shown = self._shown(reveal)
            from_client = direction == "request"
            return views.view(flow, from_client, self.bodies, start=start, end=end, max_chars=max_chars, redactor=shown)

        return await self.apart(run)

    async def diff(self, a: int, b: int, *, reveal: bool = False) -> diff.FlowDiff:
        """What is different in flow b."""
        left, right = await self.flow(a), await self.flow(b)
        return await self.apart(diff.diff, left, right, self.bodies, self._shown(reveal))

    async def curl(self, flow_id: int, *, reveal: bool = False) -> str:
        return await self.apart(snippets.curl, await self.flow(flow_id), self.bodies, self._shown(reveal))

    async def python(self, flow_id: int, client: Literal["httpx", "urllib"] = "httpx", *, reveal: bool = False) -> str:
        flow = await self.flow(flow_id)
        return await self.apart(snippets.python, flow, self.bodies, self._shown(reveal), client)

    async def replay(
        self,
        flow_id: int,
        edits: replays.RequestEdits = replays.RequestEdits(),  # noqa: B008 (frozen)
        *,
        keeps_secrets: bool = False,
    ) -> replays.Replay:
        """The request to send again, with the secrets it had; another origin gets them only with `keeps_secrets`."""
        flow = await self.flow(flow_id)
        return await self.apart(replays.build, flow, edits, self.bodies, keeps_secrets=keeps_secrets)

    def export_har(
        self,
        wanted: TrafficFilter = EVERYTHING,
        limit: int = MAX_FLOWS,
        *,
        reveal: bool = False,
        include_bodies: bool = True,
    ) -> Iterator[bytes]:
        """The newest flows that fit as the pieces of a HAR file, oldest first; iterate in a thread when it is long."""
        sources = self._sources(reveal)
        if limit < 1:
            raise InvalidInput(f"limit must be 1 or more, not {limit}")
        return har.export(_oldest(sources, wanted, limit), self.bodies, sources.redactor, include_bodies=include_bodies)

    async def import_har(self, data: bytes) -> har_import.Imported:
        """Add the flows of a HAR file as if they had just ended."""
        imported = await self.apart(har_import.load, data, self.next_id, self.bodies)
        for number, flow in enumerate(imported.flows, 1):
            self.ring.began(flow)
            self.ring.finished(flow)
            if self.store is not None:
                self.store.put(flow)
                if number % _IMPORT_BATCH == 0:  # or a long file would fill the queue
                    await asyncio.to_thread(self.store.flush)
        return imported

    def _shown(self, reveal: bool) -> Redactor:
        return REVEALED if reveal else self.redactor

    def _sources(self, reveal: bool) -> Sources:
        return Sources(self.ring.newest(), self.store, self.bodies, self._shown(reveal))

    def _preload(self, store: FlowStore) -> None:
        """Bring the newest stored flows back into memory, under numbers that no reader waits for."""
        newest = [store.get(flow_id) for flow_id in islice(store.newest_ids(), min(_PRELOADED, self.ring.capacity))]
        self.ring.last_seq = max(0, store.saved_seq - 5 * len(newest))
        for flow in reversed(newest):
            if flow is None:
                continue
            if flow.state != "done":
                flow.state, flow.error = "done", flow.error or "the proxy ended before this request did"
            self.ring.began(flow)
            self.ring.finished(flow)
        self.ring.last_seq = max(self.ring.last_seq, store.first_seq - 1)


def flow_id_of(request_id: str) -> int:
    """The id as callers write it: a decimal string."""
    if not request_id.isascii() or not request_id.isdigit() or len(request_id) > 18:
        raise InvalidInput(f"no request id: {request_id[:40]!r}", "give a number such as crab_traffic_tail shows")
    return int(request_id)


def _oldest(sources: Sources, wanted: TrafficFilter, limit: int) -> Iterator[Flow]:
    """Ids are collected first and flows read one at a time, so that memory holds one of them."""
    ids = [flow.id for flow in islice(Scan(sources, wanted, limit_s=_EXPORT_S), limit)]
    memory = {flow.id: flow for flow in sources.memory}
    for flow_id in reversed(ids):
        flow = memory.get(flow_id) or (sources.store.get(flow_id) if sources.store is not None else None)
        if flow is not None:
            yield flow
