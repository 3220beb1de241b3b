"""One flow as a row: the fields a reader names, secrets hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dari.errors import InvalidInput
from dari.proxy import headers
from dari.proxy.flow import Flow, Tls, WebSocketFrame
from dari.proxy.query import filters, views
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import Redactor

DEFAULT_FIELDS = (
    "request_id",
    "id",
    "ts_unix_ms",
    "method",
    "url",
    "status",
    "event",
    "duration_ms",
    "response_bytes",
    "mime",
    "error",
)
URL_CHARS = 1000
BODY_CHARS = 2000
FRAMES = 50
FRAME_CHARS = 500

_PLAIN: dict[str, Callable[[Flow], Any]] = {
    "request_id": lambda flow: str(flow.id),  # as every tool takes it
    "id": lambda flow: flow.id,
    "ts_unix_ms": lambda flow: flow.started_unix_ms,
    "method": lambda flow: flow.method,
    "scheme": lambda flow: flow.scheme,
    "host": lambda flow: flow.authority,
    "http_version": lambda flow: flow.http_version,
    "status": lambda flow: flow.status,
    "upstream_status": lambda flow: flow.upstream_status,
    "event": lambda flow: flow.event,
    "state": lambda flow: flow.state,
    "head_ms": lambda flow: None if flow.head_ms is None else round(flow.head_ms, 1),
    "duration_ms": lambda flow: None if flow.total_ms is None else round(flow.total_ms, 1),
    "mime": filters.mime_of,
    "peer": lambda flow: flow.peer,
    "process": lambda flow: flow.process,
    "pid": lambda flow: flow.pid,
    "rule_ids": lambda flow: list(flow.rule_ids),
    "map_local": lambda flow: flow.map_local,
    "map_remote": lambda flow: flow.map_remote,
    "status_rewrite": lambda flow: flow.status_rewrite,
    "replay_of": lambda flow: flow.replay_of,
    "tls": lambda flow: _tls(flow.tls),
    "messages": lambda flow: None if flow.frames is None else len(flow.frames),
}
_SHOWN: dict[str, Callable[[Flow, BodyStore | None, Redactor], Any]] = {
    "url": lambda flow, _, redactor: _url(redactor.url(flow.url)),
    "map_remote_to": lambda flow, _, redactor: flow.map_remote_to and _url(redactor.url(flow.map_remote_to)),
    "request_bytes": lambda flow, _, redactor: views.shown_size(flow.request_body, flow.request_headers, redactor),
    "response_bytes": lambda flow, _, redactor: views.shown_size(flow.response_body, flow.response_headers, redactor),
    "error": lambda flow, _, redactor: _error(flow, redactor),
    "request_headers": lambda flow, _, redactor: headers.lines(views.shown_headers(flow, True, redactor)),
    "response_headers": lambda flow, _, redactor: headers.lines(views.shown_headers(flow, False, redactor)),
    "request_body": lambda flow, bodies, redactor: _body(flow, True, bodies, redactor),
    "response_body": lambda flow, bodies, redactor: _body(flow, False, bodies, redactor),
    "frames": lambda flow, _, redactor: _frames(flow, redactor),
}
FIELDS = (*_PLAIN, *_SHOWN)


def rows_fields(names: list[str]) -> tuple[str, ...]:
    """The names, checked; the id is always there, since everything else needs it."""
    for name in names:
        if name not in _PLAIN and name not in _SHOWN:
            raise InvalidInput(f"unknown field {name!r}", "fields: " + ", ".join(FIELDS))
    return tuple(dict.fromkeys(("id", *names)))


def row_of(flow: Flow, names: tuple[str, ...], bodies: BodyStore | None, redactor: Redactor) -> dict[str, Any]:
    """The named fields; those without a value are left out, which saves a third of the tokens."""
    row: dict[str, Any] = {}
    for name in names:
        plain = _PLAIN.get(name)
        value = plain(flow) if plain else _SHOWN[name](flow, bodies, redactor)
        if value not in (None, "", []):
            row[name] = value
    return row


def _url(url: str) -> str:
    return url if len(url) <= URL_CHARS else f"{url[:URL_CHARS]}…({len(url)} characters)"


def _error(flow: Flow, redactor: Redactor) -> str | None:
    error = flow.error or flow.response_body.error or flow.request_body.error
    return error and redactor.body(error, "")


def _body(flow: Flow, from_client: bool, bodies: BodyStore | None, redactor: Redactor) -> Any:
    shown = views.view(flow, from_client, bodies, max_chars=BODY_CHARS, redactor=redactor)
    return None if shown.kind == "empty" else msgspec.to_builtins(shown)


def _frames(flow: Flow, redactor: Redactor) -> list[dict[str, Any]]:
    """The newest WebSocket messages, oldest first."""
    return [_frame(frame, redactor) for frame in (flow.frames or [])[-FRAMES:]]


def _frame(frame: WebSocketFrame, redactor: Redactor) -> dict[str, Any]:
    text = frame.payload.decode(errors="replace") if frame.opcode == 1 else f"<opcode {frame.opcode}>"
    shown = redactor.body(text, "")
    return {
        "from_client": frame.from_client,
        "ts_unix_ms": frame.ts_unix_ms,
        "bytes": frame.size_bytes if shown == text else views.rough(frame.size_bytes),
        "text": shown[:FRAME_CHARS],
    }


def _tls(tls: Tls | None) -> Any:
    return None if tls is None else {key: value for key, value in msgspec.to_builtins(tls).items() if value}
