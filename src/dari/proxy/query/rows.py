"""The table of requests: flows as short rows, older ones in pages, newer ones as changes after a cursor.

A row is an array, because a page keeps 50,000 of them and a burst brings thousands a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.query import filters, views
from dari.proxy.query.filters import Test, TrafficFilter
from dari.proxy.query.search import Scan, Sources
from dari.proxy.query.wait import MAX_WAITING
from dari.proxy.recording.ring import Ring, Slot
from dari.text.redact import Redactor

MAX_ROWS = 2000
MAX_CHANGES = 200
"""At once: five screens. A row costs 60 µs with its secrets hidden, and a burst must leave the proxy its time."""
MAX_RUNNING = 200
METHOD_CHARS = 30
HOST_CHARS = 260
PATH_CHARS = 500
ERROR_CHARS = 200


class FlowRow(Struct, frozen=True, array_like=True):
    """One line of the table; sizes as lists show them, secrets hidden."""

    id: int
    started_unix_ms: int
    method: str
    scheme: str
    host: str
    path: str
    status: int | None
    mime: str
    request_bytes: int
    response_bytes: int
    duration_ms: float | None
    process: str | None
    rule_ids: tuple[str, ...]
    event: str
    state: Literal["request", "response", "done"]
    error: str | None
    messages: int | None
    replay_of: int | None


class RowPage(Struct, frozen=True):
    """Rows, the oldest first. `next_before_id` asks for those before them; None when there are no older ones."""

    rows: list[FlowRow]
    next_before_id: int | None
    scanned: int


class RowChanges(Struct, frozen=True):
    """What changed after a cursor, oldest id first.

    `is_stale`: the cursor is of another run, or what it stood at was cleared or pushed out: read the table anew.
    `is_cut`: more than fits changed, and only the newest are here. `gone_ids` changed and do not fit the filter now.
    """

    cursor: str
    rows: list[FlowRow]
    gone_ids: list[int]
    is_stale: bool = False
    is_cut: bool = False


def row(flow: Flow, redactor: Redactor) -> FlowRow:
    """The flow as a row."""
    host, path = _place(flow, redactor)
    error = flow.error or flow.response_body.error or flow.request_body.error
    return FlowRow(
        flow.id,
        flow.started_unix_ms,
        _short(flow.method, METHOD_CHARS),
        flow.scheme,
        _short(host, HOST_CHARS),
        _short(path, PATH_CHARS),
        flow.status,
        _short(filters.mime_of(flow), HOST_CHARS),
        views.shown_size(flow.request_body, flow.request_headers, redactor),
        views.shown_size(flow.response_body, flow.response_headers, redactor),
        None if flow.total_ms is None else round(flow.total_ms, 1),
        flow.process and _short(flow.process, HOST_CHARS),
        flow.rule_ids,
        flow.event,
        flow.state,
        error and _short(redactor.body(error, ""), ERROR_CHARS),
        None if flow.frames is None else len(flow.frames),
        flow.replay_of,
    )


def page(sources: Sources, wanted: TrafficFilter, before_id: int | None, limit: int) -> RowPage:
    """The newest rows that fit, of those before an id."""
    if not 1 <= limit <= MAX_ROWS:
        raise InvalidInput(f"limit must be 1 to {MAX_ROWS}, got {limit}", "ask for older ones with before_id")
    walk = Scan(sources, wanted, before_id)
    rows: list[FlowRow] = []
    is_full = False
    for flow in walk:
        if is_full := len(rows) >= limit:
            break
        rows.append(row(flow, sources.redactor))
    next_before_id = walk.last_id if is_full or walk.is_cut else None
    return RowPage(rows[::-1], next_before_id, walk.scanned)


class ChangeLog:
    """Reads the ring as changes. A cursor is `run.clears.seq`: a restart and a clearing make old ones stale."""

    def __init__(self, ring: Ring, run: str) -> None:
        self._ring = ring
        self._run = run

    @property
    def cursor(self) -> str:
        return f"{self._run}.{self._ring.clears}.{self._ring.last_seq}"

    def after(self, cursor: str, limit: int) -> tuple[list[Flow], bool] | None:
        """The flows that changed, by id, and whether older ones were left out; None when the cursor is stale."""
        run, _, rest = cursor.partition(".")
        clears, _, seq = rest.partition(".")
        ring = self._ring
        if run != self._run or clears != str(ring.clears) or not (seq.isascii() and seq.isdigit()):
            return None
        after_seq = int(seq)
        if not ring.oldest_seq - 1 <= after_seq <= ring.last_seq:
            return None
        found: dict[int, Flow] = {}
        for first_seq, mark in ring.marks_newest():
            if first_seq <= after_seq:
                break
            if isinstance(mark, Slot) and mark.flow.id not in found:
                if len(found) >= limit:
                    return _by_id(found), True
                found[mark.flow.id] = mark.flow
        return _by_id(found), False

    async def wait(self, timeout_s: float) -> None:
        """Until a flow begins or ends, or everything is cleared, or the time is over."""
        listeners = self._ring.on_change
        if len(listeners) >= MAX_WAITING:
            raise InvalidInput(f"{MAX_WAITING} readers wait for changes", "close a console page")
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def note() -> None:
            if not changed.done():
                changed.set_result(None)

        listeners.append(note)
        try:
            async with asyncio.timeout(timeout_s):
                await changed
        except TimeoutError:
            pass
        finally:
            listeners.remove(note)


def split(flows: Iterable[Flow], test: Test, redactor: Redactor) -> tuple[list[FlowRow], list[int]]:
    """Rows of the flows that fit, and the ids of the others."""
    rows: list[FlowRow] = []
    gone_ids: list[int] = []
    for flow in flows:
        if test(flow):
            rows.append(row(flow, redactor))
        else:
            gone_ids.append(flow.id)
    return rows, gone_ids


def _by_id(found: dict[int, Flow]) -> list[Flow]:
    return [found[flow_id] for flow_id in sorted(found)]


def _short(text: str, chars: int) -> str:
    """Names of files and programs may hold half a surrogate pair, which JSON cannot carry."""
    shown = text if len(text) <= chars else text[:chars] + "…"
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


def _place(flow: Flow, redactor: Redactor) -> tuple[str, str]:
    """Host and path as they may be shown; a redactor may change either."""
    url = redactor.url(flow.url)
    if flow.method == "CONNECT":
        return url, ""
    prefix = f"{flow.scheme}://{flow.authority}"
    if url.startswith(prefix):
        return flow.authority, url[len(prefix) :]
    rest = url.partition("://")[2]
    end = min((place for sign in "/?#" if (place := rest.find(sign)) >= 0), default=len(rest))
    return rest[:end], rest[end:]
