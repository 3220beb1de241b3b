"""Traffic as one entry per request, in the shape of the original's `crab_traffic_tail` and `crab_traffic_get`.

Where the original went wrong and we do not: the newest requests come first, a request is never cut in two by the
limit, the status is the one the client saw, and a compressed body is shown decoded.
"""

from __future__ import annotations

import msgspec

from dari.proxy import content_coding, headers
from dari.proxy.flow import Body, Flow, Headers
from dari.proxy.formats import log
from dari.proxy.query import views
from dari.proxy.recording.ring import Ring, Slot
from dari.text.redact import HIDING, Redactor

PREVIEW_CHARS = 2048
MAX_RECORDS = 1000
MAX_ENTRIES = 500


class BodySample(msgspec.Struct, frozen=True):
    """The start of a body; `sample_b64` only when it was asked for."""

    bytes: int
    preview: str | None = None
    sample_b64: str | None = None


class TrafficEntry(msgspec.Struct, frozen=True):
    """One request; null where nothing is known yet."""

    request_id: str
    event: str
    method: str
    url: str
    peer: str
    status: int | None
    duration_ms: int | None
    response_size_bytes: int | None
    map_local: str | None
    map_remote: str | None
    map_remote_to: str | None
    request_headers: str | None
    response_headers: str | None
    request_body: BodySample | None
    response_body: BodySample | None
    seq_first: int
    seq_last: int
    ts_unix_ms: int
    error: str | None = None


class EntryPage(msgspec.Struct, frozen=True):
    next_seq: int
    records_scanned: int
    entry_count: int
    entries: list[TrafficEntry]
    truncated: bool = False
    """True when requests after `after_seq` were left out: older than the ones shown."""


class EntryFound(msgspec.Struct, frozen=True):
    next_seq: int
    records_scanned: int
    request_id: str
    entry: TrafficEntry


class EntryOptions(msgspec.Struct, frozen=True):
    """How an entry is shown."""

    include_headers: bool = True
    include_body_sample_b64: bool = False


def tail(
    ring: Ring,
    after_seq: int = 0,
    limit: int = 400,
    max_entries: int = 100,
    look: EntryOptions = EntryOptions(),  # noqa: B008 (frozen)
    redactor: Redactor = HIDING,
) -> EntryPage:
    """The newest requests with a record after `after_seq`, whole, up to `limit` records and `max_entries`."""
    return render(select(ring, after_seq, limit, max_entries), look, redactor)


class SlotSelection(msgspec.Struct, frozen=True):
    """The requests of a page, before they are rendered."""

    slots: list[Slot]
    next_seq: int
    records_scanned: int
    truncated: bool


def select(ring: Ring, after_seq: int, limit: int, max_entries: int) -> SlotSelection:
    """Which requests a page has: quick, and done on the event loop."""
    limit, max_entries = min(limit, MAX_RECORDS), min(max_entries, MAX_ENTRIES)
    slots: list[Slot] = []
    seen: set[int] = set()
    scanned = 0
    truncated = False
    for first_seq, mark in ring.marks_newest():
        if not isinstance(mark, Slot) or mark.flow.id in seen:
            continue
        last_seq = first_seq if first_seq != mark.end_seq else log.numbers_of(first_seq, mark)[-1]
        if last_seq <= after_seq:
            break
        size = log.count_of(mark)
        # One request is shown even when it alone is above the limit, or a reader would never get past it.
        has_room = scanned + size <= limit or (not slots and limit > 0)
        if len(slots) >= max_entries or not has_room:
            truncated = True
            break
        seen.add(mark.flow.id)
        slots.append(mark)
        scanned += size
    return SlotSelection(slots, max(ring.last_seq, after_seq), scanned, truncated)


def render(choice: SlotSelection, look: EntryOptions, redactor: Redactor) -> EntryPage:
    """The page itself; 100 redacted entries take 10 ms, so a daemon does this in a thread."""
    made = [entry(slot, look, redactor) for slot in choice.slots]
    return EntryPage(choice.next_seq, choice.records_scanned, len(made), made, choice.truncated)


def entry(slot: Slot, look: EntryOptions, redactor: Redactor = HIDING) -> TrafficEntry:
    """One request as far as it has come."""
    flow = slot.flow
    last_seq = log.numbers_of(slot.end_seq, slot)[-1] if slot.end_seq else slot.seq
    return TrafficEntry(
        request_id=str(flow.id),
        event=flow.event,
        method=flow.method,
        url=redactor.url(flow.url),
        peer=flow.peer,
        status=flow.status,
        duration_ms=None if flow.head_ms is None else round(flow.head_ms),
        response_size_bytes=log.response_size(flow, redactor),
        map_local=flow.map_local,
        map_remote=flow.map_remote,
        map_remote_to=flow.map_remote_to and redactor.url(flow.map_remote_to),
        request_headers=_block(flow, True, look, redactor),
        response_headers=_block(flow, False, look, redactor),
        request_body=_sample(flow, flow.request_body, flow.request_headers, look, redactor),
        response_body=_sample(flow, flow.response_body, flow.response_headers, look, redactor),
        seq_first=slot.first_seq,
        seq_last=last_seq,
        ts_unix_ms=flow.started_unix_ms + round(flow.total_ms or flow.head_ms or 0),
        error=flow.error and redactor.body(flow.error, ""),
    )


def _block(flow: Flow, from_client: bool, look: EntryOptions, redactor: Redactor) -> str | None:
    block = views.shown_headers(flow, from_client, redactor) if look.include_headers else []
    return headers.lines(block) if block else None


def _sample(flow: Flow, body: Body, head: Headers, look: EntryOptions, redactor: Redactor) -> BodySample | None:
    if flow.is_encrypted or not body.size_bytes:
        return None
    encoded = log.sample_b64(body, head, redactor) if look.include_body_sample_b64 else None
    size = views.rough(body.size_bytes) if views.hides(body, head, redactor) else body.size_bytes
    return BodySample(size, _preview(body, head, redactor), encoded)


def _preview(body: Body, head: Headers, redactor: Redactor) -> str | None:
    if not body.sample:
        return None
    text = content_coding.sample_text(body.sample, head)
    if text is None:
        return f"<binary {headers.mime(head) or 'data'}, {body.size_bytes} bytes>"
    if len(text) <= PREVIEW_CHARS:
        return redactor.body(text, headers.mime(head))
    # Redact before the cut: half a token helps an attacker who knows the other half.
    return redactor.body(text, headers.mime(head))[:PREVIEW_CHARS] + "...(truncated)"
