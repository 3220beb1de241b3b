"""The live table of requests that a person looks at: rows by filter, and what changes in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dari.daemon.stub import expose
from dari.errors import InvalidInput
from dari.proxy.query import filters, rows
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.rows import MAX_CHANGES, MAX_RUNNING, ChangeLog, RowChanges, RowPage
from dari.proxy.query.search import Sources

if TYPE_CHECKING:
    from dari.proxy.runtime import ProxyRuntime

DEFAULT_ROWS = 500
MAX_WAIT_S = 30.0


class FlowTableApi:
    def __init__(self, runtime: ProxyRuntime) -> None:
        self._recording = runtime.recording
        self._log = ChangeLog(runtime.recording.ring, os.urandom(4).hex())

    @expose("traffic.rows", "read")
    async def rows(self, query: str = "", before_id: int | None = None, limit: int = DEFAULT_ROWS) -> RowPage:
        """The newest requests that fit the filter, of those before an id; the oldest first."""
        recording = self._recording
        sources = Sources(recording.ring.newest(), recording.store, recording.bodies, recording.redactor)
        return await recording.read(rows.page, sources, _wanted(query), before_id, limit)

    @expose("traffic.changes", "read", ends_with_caller=True)
    async def changes(
        self,
        cursor: str = "",
        query: str = "",
        limit: int = MAX_CHANGES,
        include_running: bool = False,
        timeout_s: float = 0,
    ) -> RowChanges:
        """Requests that began or ended after a cursor; waits for the first one until the time is over.

        `include_running` adds those that still run: their size and status change without a mark in the log. Read the
        rows after the first call, whose cursor is empty and thus stale.
        """
        if not 1 <= limit <= MAX_CHANGES:
            raise InvalidInput(f"limit must be 1 to {MAX_CHANGES}, got {limit}", "call again with the next cursor")
        recording, log = self._recording, self._log
        test = filters.test_of(_wanted(query), recording.bodies, recording.redactor)
        if log.after(cursor, 1) == ([], False):
            await log.wait(min(max(timeout_s, 0), MAX_WAIT_S))
        now, found = log.cursor, log.after(cursor, limit)
        if found is None:
            return RowChanges(now, [], [], is_stale=True)
        flows, is_cut = found
        if include_running:
            seen = {flow.id for flow in flows}
            running = recording.recorder.open_flows[-MAX_RUNNING:]
            flows = sorted((*flows, *(flow for flow in running if flow.id not in seen)), key=lambda flow: flow.id)
        made, gone_ids = await recording.read(rows.split, flows, test, recording.redactor)
        return RowChanges(now, made, gone_ids, is_cut=is_cut)


def _wanted(query: str) -> TrafficFilter:
    return TrafficFilter(query=query) if query.strip() else TrafficFilter()
