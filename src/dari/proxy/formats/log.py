"""The log as the original's clients read it: numbered lines, most of them `CRAB_JSON {…}`."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dari.proxy import content_coding, headers
from dari.proxy.flow import Body, Flow, Headers
from dari.proxy.query import views
from dari.proxy.recording.ring import Mark, Note, Ring, Slot
from dari.rpc.codec import encode
from dari.text.redact import HIDING, REVEALED, Redactor

LEVEL = 2
MAX_LOG_RECORDS = 1000

_REQUEST_BODY, _RESPONSE_HEADERS, _ENTRY, _RESPONSE_BODY = range(4)


class TrafficLogRecord(msgspec.Struct, frozen=True):
    seq: int
    level: int
    message: str
    ts_unix_ms: int


class LogPage(msgspec.Struct, frozen=True):
    next_seq: int
    records: list[TrafficLogRecord]


class Cleared(msgspec.Struct, frozen=True):
    ok: bool
    cleared: int
    next_seq: int


def tail(ring: Ring, after_seq: int = 0, limit: int = 200, redactor: Redactor = HIDING) -> LogPage:
    """The records after `after_seq`, oldest first; `next_seq` is what to pass as `after_seq` the next time."""
    return render(select(ring, after_seq, limit), after_seq, redactor)


def select(ring: Ring, after_seq: int, limit: int) -> list[tuple[int, Mark]]:
    """The numbers that a page has, with their marks: quick, and done on the event loop."""
    limit = min(limit, MAX_LOG_RECORDS)
    found: list[tuple[int, Mark]] = []
    for first_seq, mark in ring.marks_after(after_seq):
        if len(found) >= limit:
            break
        found += [(seq, mark) for seq in numbers_of(first_seq, mark) if seq > after_seq]
    return found[: max(0, limit)]


def render(found: list[tuple[int, Mark]], after_seq: int, redactor: Redactor) -> LogPage:
    """The page itself: a thousand redacted records take 60 ms, so a daemon does this in a thread."""
    shown = redactor if redactor is REVEALED else _Once(redactor)
    records = [_record(seq, mark, shown) for seq, mark in found]
    return LogPage(records[-1].seq if records else after_seq, records)


def count(marks: Iterable[tuple[int, Mark]]) -> int:
    """How many records these marks of the log stand for."""
    return sum(len(numbers_of(first_seq, mark)) for first_seq, mark in marks)


def numbers_of(first_seq: int, mark: Mark) -> list[int]:
    """The numbers in this mark that stand for a record."""
    if isinstance(mark, Note):
        return [first_seq]
    if first_seq == mark.end_seq:
        return [first_seq + part for part in _parts(mark.flow)]
    return [first_seq] if mark.flow.method != "CONNECT" else []


def count_of(slot: Slot) -> int:
    """How many records the flow has by now."""
    began = len(numbers_of(slot.seq, slot)) if slot.seq else 0
    return began + (len(numbers_of(slot.end_seq, slot)) if slot.end_seq else 0)


def sample_b64(body: Body, head: Headers, redactor: Redactor) -> str:
    """The first bytes as they were; behind a redactor text is decoded first, or gzip would hide what it must see."""
    sample = body.sample
    if redactor is not REVEALED and sample:
        text = content_coding.sample_text(sample, head)
        if text is not None:
            sample = redactor.body(text, headers.mime(head)).encode()
        elif any(views.shows_secret(data, redactor) for data in (sample, content_coding.decoded_sample(sample, head))):
            sample = b""
    return base64.b64encode(sample).decode()


class _Once(Redactor):
    """Hides secrets in a URL once for the five records that show it."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor
        self._urls: dict[str, str] = {}

    def headers(self, headers: Headers) -> Headers:
        return self._redactor.headers(headers)

    def url(self, url: str) -> str:
        shown = self._urls.get(url)
        if shown is None:
            shown = self._urls[url] = self._redactor.url(url)
        return shown

    def body(self, text: str, mime: str) -> str:
        return self._redactor.body(text, mime)


def _parts(flow: Flow) -> Iterator[int]:
    if flow.event == "tunnel":
        yield _ENTRY
        return
    if flow.request_body.size_bytes or flow.request_body.error:
        yield _REQUEST_BODY
    if flow.response_headers:
        yield _RESPONSE_HEADERS
    yield _ENTRY
    if flow.response_body.size_bytes or flow.response_body.error:
        yield _RESPONSE_BODY


def _record(seq: int, mark: Mark, redactor: Redactor) -> TrafficLogRecord:
    if isinstance(mark, Note):
        return TrafficLogRecord(seq, mark.level, redactor.body(mark.message, ""), mark.ts_unix_ms)
    flow = mark.flow
    if seq < mark.end_seq or not mark.end_seq:
        return _line(seq, flow, "request_headers", redactor, 0, headers_b64=_headers_b64(flow, True, redactor))
    match seq - mark.end_seq:
        case 0:
            return _inspection(seq, flow, flow.request_body, flow.request_headers, "request", redactor)
        case 1:
            block = _headers_b64(flow, False, redactor)
            status = flow.upstream_status if flow.upstream_status is not None else flow.status
            return _line(seq, flow, "response_headers", redactor, flow.head_ms, headers_b64=block, status=status)
        case 2:
            return _entry(seq, flow, redactor)
        case _:
            return _inspection(seq, flow, flow.response_body, flow.response_headers, "response", redactor)


def _entry(seq: int, flow: Flow, redactor: Redactor) -> TrafficLogRecord:
    extra: dict[str, Any] = {
        "status": flow.status,
        "duration_ms": None if flow.head_ms is None else round(flow.head_ms),
        "response_size_bytes": response_size(flow, redactor),
        "map_local": flow.map_local,
        "map_remote": flow.map_remote,
        "map_remote_to": flow.map_remote_to and redactor.url(flow.map_remote_to),
    }
    if flow.is_encrypted:
        extra["encrypted"] = True
    if flow.error:
        extra["error"] = redactor.body(flow.error, "")
    return _line(seq, flow, flow.event, redactor, flow.head_ms, kind="entry", **extra)


def response_size(flow: Flow, redactor: Redactor) -> int | None:
    """What Content-Length announced, else what went by; rough where a secret is hidden."""
    size = _exact_size(flow)
    if size is None or not views.hides(flow.response_body, flow.response_headers, redactor):
        return size
    return views.rough(size)


def _exact_size(flow: Flow) -> int | None:
    announced = headers.value(flow.response_headers, b"content-length") or ""
    if announced.isascii() and announced.isdigit() and len(announced) < 19:
        return int(announced)
    return flow.response_body.size_bytes if flow.response_body.outcome != "open" else None


def _inspection(
    seq: int, flow: Flow, body: Body, head: Headers, direction: str, redactor: Redactor
) -> TrafficLogRecord:
    return _line(
        seq,
        flow,
        "body_inspection",
        redactor,
        flow.total_ms,
        direction=direction,
        response_status=flow.status,
        body_bytes=views.rough(body.size_bytes) if views.hides(body, head, redactor) else body.size_bytes,
        sample_b64=sample_b64(body, head, redactor),
        outcome="error" if body.outcome == "error" else "complete",
        error=body.error and redactor.body(body.error, ""),
    )


def _headers_b64(flow: Flow, from_client: bool, redactor: Redactor) -> str:
    return base64.b64encode(headers.lines(views.shown_headers(flow, from_client, redactor)).encode()).decode()


def _line(
    seq: int, flow: Flow, event: str, redactor: Redactor, at_ms: float | None, *, kind: str = "meta", **extra: Any
) -> TrafficLogRecord:
    members = {
        "type": kind,
        "event": event,
        "request_id": str(flow.id),
        "peer": flow.peer,
        "method": flow.method,
        "url": redactor.url(flow.url),
        **extra,
    }
    at = flow.started_unix_ms + round(at_ms if at_ms is not None else flow.total_ms or 0)
    return TrafficLogRecord(seq, LEVEL, "CRAB_JSON " + encode(members).decode(), at)
