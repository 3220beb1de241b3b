"""Flows by filter, newest first, in pages that fit a model's context.

Recent flows are tested in memory, because running requests are only there and no flush has to be waited for; older
ones are narrowed down by SQLite's indices and tested the same way. Ids fall from page to page, so a cursor stays good
while new flows arrive.
"""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.query import filters
from dari.proxy.query.fields import DEFAULT_FIELDS, row_of, rows_fields
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.recording.bodies import BodyStore
from dari.proxy.recording.store import FlowStore
from dari.rpc.codec import encode
from dari.text.redact import HIDING, Redactor

DEFAULT_LIMIT_FLOWS = 50
MAX_LIMIT_FLOWS = 500
DEFAULT_TOKEN_BUDGET = 8_000
MAX_SCAN_FLOWS = 100_000
MAX_SCAN_S = 2.0
BYTES_PER_TOKEN = 4


class SearchResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of flows. `stopped_by` says what ended it early: limit, token_budget or scan."""

    flows: list[dict[str, Any]]
    count: int
    scanned: int
    tokens: int
    truncated: bool = False
    stopped_by: str | None = None
    next_cursor: str | None = None


class Sources(msgspec.Struct, frozen=True):
    """Where flows are read: a copy of the ring, the database, the bodies; and what hides their secrets."""

    memory: list[Flow]
    store: FlowStore | None = None
    bodies: BodyStore | None = None
    redactor: Redactor = HIDING


class Scan:
    """Walks flows from the newest to the oldest that a filter wants; counts its steps and stops in time."""

    def __init__(
        self,
        sources: Sources,
        wanted: TrafficFilter,
        before_id: int | None = None,
        most: int = MAX_SCAN_FLOWS,
        limit_s: float = MAX_SCAN_S,
    ) -> None:
        self.scanned = 0
        self.last_id = before_id
        self.is_cut = False
        self._sources = sources
        self._wanted = wanted
        self._before_id = before_id
        self._most = most
        self._until = time.monotonic() + limit_s
        self._test = filters.test_of(wanted, sources.bodies, sources.redactor)

    def __iter__(self) -> Iterator[Flow]:
        for flow in self._candidates():
            if self.scanned >= self._most or time.monotonic() > self._until:
                self.is_cut = True
                return
            self.scanned += 1
            wanted = self._test(flow)
            if wanted:
                yield flow  # `last_id` moves only after the reader has taken it
            self.last_id = flow.id

    def _candidates(self) -> Iterator[Flow]:
        """Memory and database merged by id; a flow that both have is taken from memory, where it is newer."""
        memory = [flow for flow in self._sources.memory if self._before_id is None or flow.id < self._before_id]
        store = self._sources.store
        if store is None:
            yield from memory
            return
        held = {flow.id for flow in memory}
        where, values = filters.sql_of(self._wanted)
        stored = store.newest_ids(where, values, self._before_id)
        stored_id = next(stored, None)
        # In step, so that a page of new flows reads a page of ids and not those of the whole ring.
        for flow in memory:
            while stored_id is not None and stored_id >= flow.id:
                if stored_id not in held:
                    yield from _loaded(store, stored_id)
                stored_id = next(stored, None)
            yield flow
        while stored_id is not None:
            yield from _loaded(store, stored_id)
            stored_id = next(stored, None)


def search(
    sources: Sources,
    wanted: TrafficFilter,
    *,
    limit: int = DEFAULT_LIMIT_FLOWS,
    cursor: str | None = None,
    fields: list[str] | None = None,
    token_budget: int = DEFAULT_TOKEN_BUDGET,
    scan: int = MAX_SCAN_FLOWS,
) -> SearchResult:
    """One page; pass `next_cursor` as `cursor` for the next."""
    if not 1 <= limit <= MAX_LIMIT_FLOWS:
        raise InvalidInput(
            f"limit must be 1 to {MAX_LIMIT_FLOWS}, got {limit}", "ask for the next page with next_cursor"
        )
    names = rows_fields(fields) if fields is not None else DEFAULT_FIELDS
    walk = Scan(sources, wanted, _before(cursor, wanted), scan)
    rows: list[dict[str, Any]] = []
    size_bytes = 0
    stopped_by: str | None = None
    for flow in walk:
        if len(rows) >= limit:
            stopped_by = "limit"
            break
        row = row_of(flow, names, sources.bodies, sources.redactor)
        row_bytes = len(encode(row)) + 1
        if rows and size_bytes + row_bytes > token_budget * BYTES_PER_TOKEN:
            stopped_by = "token_budget"
            break
        rows.append(row)
        size_bytes += row_bytes
    if walk.is_cut:
        stopped_by = "scan"
    next_cursor = _cursor(walk.last_id, wanted) if stopped_by and walk.last_id is not None else None
    tokens = -(-size_bytes // BYTES_PER_TOKEN)
    return SearchResult(rows, len(rows), walk.scanned, tokens, stopped_by is not None, stopped_by, next_cursor)


def _loaded(store: FlowStore, flow_id: int) -> Iterator[Flow]:
    flow = store.get(flow_id)
    if flow is not None:  # evicted between the two queries
        yield flow


def _cursor(last_id: int, wanted: TrafficFilter) -> str:
    return base64.urlsafe_b64encode(f"1.{last_id}.{_mark(wanted)}".encode()).decode().rstrip("=")


def _before(cursor: str | None, wanted: TrafficFilter) -> int | None:
    if cursor is None:
        return None
    try:
        version, last_id, mark = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(".")
        before_id = int(last_id)
    except ValueError:
        version = ""
    if version != "1" or not 0 <= before_id < 2**63:
        raise InvalidInput(f"cursor must be the next_cursor of the page before, got {cursor!r}", "pass it unchanged")
    if mark != _mark(wanted):
        raise InvalidInput(
            "the cursor belongs to another filter", "keep the filter while paging, or leave the cursor out"
        )
    return before_id


def _mark(wanted: TrafficFilter) -> str:
    return f"{zlib.crc32(encode(wanted)):08x}"
