"""The topic `traffic:FILTER`: the table of requests as it changes, and the state of the proxy.

First a snapshot with the newest rows; the page fetches older ones with `dari_traffic_rows`. Then changes, at most ten a
second and `MAX_CHANGES` rows each. A page that reads slowly, or a burst, gets the newest changes with `is_cut`, and
fetches what it missed when there is time. A page that comes back with the cursor it saw last goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.console.live import TopicOptions
from dari.errors import Unavailable
from dari.proxy.api.control import ProxyInfo
from dari.proxy.api.service import ProxyService
from dari.proxy.query.language import parse
from dari.proxy.query.rows import MAX_CHANGES, FlowRow, RowChanges

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

SNAPSHOT_ROWS = 500
MIN_INTERVAL_S = 0.1
BURST_INTERVAL_S = 0.25
"""While more changes than a person can see: the page fetches what it missed afterwards."""
RUNNING_S = 1.0
"""How often requests that still run are looked at: their size grows without a mark in the log."""
WAIT_S = 2.0
MAX_RETRY_S = 1.0


class FlowSnapshot(Struct, frozen=True, tag="snapshot", tag_field="kind"):
    """Everything so far: the newest rows, oldest first, and where to go on."""

    cursor: str
    rows: list[FlowRow]
    next_before_id: int | None
    proxy: ProxyInfo


class FlowChanges(Struct, frozen=True, tag="changes", tag_field="kind", omit_defaults=True):
    """Rows that are new or different, ids that left the filter; `is_cut` when older changes were left out."""

    cursor: str
    rows: list[FlowRow] = []
    gone_ids: list[int] = []
    is_cut: bool = False
    proxy: ProxyInfo | None = None


class Down(Struct, frozen=True, tag="down", tag_field="kind"):
    """crabd does not run, or does not answer; the topic tries again by itself. Looking at traffic starts nothing."""

    message: str
    hint: str


TrafficEvent = FlowSnapshot | FlowChanges | Down


async def follow_traffic(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[TrafficEvent]:
    """The table of requests that fit the filter in `argument`."""
    parse(argument)
    events = follow(backends.proxy(False), argument, options.since)
    try:
        async for event in events:
            yield event
    finally:
        await events.aclose()


async def follow(proxy: ProxyService, query: str, since: str = "") -> AsyncGenerator[TrafficEvent, None]:
    """Never ends by itself: a crabd that is gone is asked again until it is back."""
    retry_s, is_down = MIN_INTERVAL_S, False
    while True:
        try:
            events = _follow_run(proxy, query, since)
            try:
                async for event in events:
                    retry_s, is_down, since = MIN_INTERVAL_S, False, event.cursor
                    yield event
            finally:
                await events.aclose()
        except Unavailable as error:
            if not is_down:
                is_down = True
                yield Down(error.message, error.hint)
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, MAX_RETRY_S)


async def _follow_run(proxy: ProxyService, query: str, since: str) -> AsyncGenerator[FlowSnapshot | FlowChanges, None]:
    """Ends when the cursor is stale: after a clearing, or when the reader was too far behind."""
    table = proxy.table
    changes = await table.changes(since, query)
    info = await proxy.control.info()
    if changes.is_stale:
        page = await table.rows(query, None, SNAPSHOT_ROWS)
        yield FlowSnapshot(changes.cursor, page.rows, page.next_before_id, info)
    else:
        yield FlowChanges(changes.cursor, changes.rows, changes.gone_ids, changes.is_cut, info)
    running = _Running()
    while True:
        started = monotonic()
        looks = running.is_due(started)
        changes = await table.changes(changes.cursor, query, MAX_CHANGES, looks, 0 if looks else running.wait_s)
        if changes.is_stale:
            return
        rows, news = running.news(changes, looks), None
        if looks and (now := await proxy.control.info()) != info:
            info = news = now
        if rows or changes.gone_ids or changes.is_cut or news is not None:
            yield FlowChanges(changes.cursor, rows, changes.gone_ids, changes.is_cut, news)
        interval_s = BURST_INTERVAL_S if changes.is_cut else MIN_INTERVAL_S
        await asyncio.sleep(max(0.0, interval_s - (monotonic() - started)))


class _Running:
    """Which rows of running requests were told already, and when they were looked at."""

    def __init__(self) -> None:
        self._told: dict[int, FlowRow] = {}
        self._looked = monotonic()

    @property
    def wait_s(self) -> float:
        return RUNNING_S if self._told else WAIT_S

    def is_due(self, now: float) -> bool:
        return now - self._looked >= self.wait_s

    def news(self, changes: RowChanges, looked: bool) -> list[FlowRow]:
        news = [row for row in changes.rows if self._told.get(row.id) != row]
        if looked:
            self._looked = monotonic()
            self._told = {}
        for row in changes.rows:
            if row.state == "done":
                self._told.pop(row.id, None)
            else:
                self._told[row.id] = row
        return news
