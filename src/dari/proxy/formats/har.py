"""Flows as HAR 1.2, one entry at a time, so that a long capture is never held as a whole.

Bodies are decoded, as the format wants them; text as text, anything else in base64. `_dari` carries what HAR has no
place for, so that an import of ours loses nothing but the content coding.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

import msgspec

from dari.proxy import content_coding, headers
from dari.proxy.flow import Flow, Headers
from dari.proxy.query import views
from dari.proxy.recording.bodies import BodyStore
from dari.rpc.codec import encode
from dari.text.redact import HIDING, MAX_CHARS, REVEALED, Redactor, redact_secrets
from dari.version import VERSION


def split_url(url: str) -> SplitResult:
    """Like `urlsplit`, but `http://[oops` is one odd path instead of an error."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", url, "", "")


def query_pairs(url: str) -> list[tuple[str, str]]:
    """The fields of the query in order."""
    return parse_qsl(split_url(url).query, keep_blank_values=True)


MAX_HAR_BODY_BYTES = 4 * 1024 * 1024


def export(
    flows: Iterable[Flow],
    bodies: BodyStore | None = None,
    redactor: Redactor = HIDING,
    *,
    include_bodies: bool = True,
    body_bytes: int = MAX_HAR_BODY_BYTES,
) -> Iterator[bytes]:
    """The pieces of a HAR file. Tunnels are left out: nothing of their content was seen."""
    creator = {"name": "dari", "version": VERSION}
    yield b'{"log":{"version":"1.2","creator":%b,"pages":[],"entries":[' % encode(creator)
    separator = b"\n"
    for flow in flows:
        if flow.method == "CONNECT" or flow.is_encrypted:
            continue
        made = entry(flow, bodies, redactor, body_bytes if include_bodies else 0)
        # An agent reads the file, not us: it passes the same gate as a result.
        yield separator + encode(made if redactor is REVEALED else redact_secrets(made))
        separator = b",\n"
    yield b"\n]}}\n"


def entry(flow: Flow, bodies: BodyStore | None, redactor: Redactor, body_bytes: int) -> dict[str, Any]:
    """One `log.entries` item."""
    total_ms = max(flow.total_ms if flow.total_ms is not None else flow.head_ms or 0.0, 0.0)
    head_ms = min(flow.head_ms if flow.head_ms is not None else total_ms, total_ms)
    wait_ms, receive_ms = round(head_ms, 3), round(total_ms - head_ms, 3)
    made: dict[str, Any] = {
        "startedDateTime": timestamp(flow.started_unix_ms),
        "time": round(wait_ms + receive_ms, 3),
        "request": _request(flow, bodies, redactor, body_bytes),
        "response": _response(flow, bodies, redactor, body_bytes),
        "cache": {},
        "timings": {
            "blocked": -1,
            "dns": -1,
            "connect": -1,
            "ssl": -1,
            "send": 0,
            "wait": wait_ms,
            "receive": receive_ms,
        },
        "_dari": _extra(flow, redactor),
    }
    if flow.frames is not None:
        made["_resourceType"] = "websocket"
        made["_webSocketMessages"] = [
            {
                "type": "send" if frame.from_client else "receive",
                "time": frame.ts_unix_ms / 1000,
                "opcode": frame.opcode,
                "data": _frame(frame.opcode, frame.payload, redactor),
            }
            for frame in flow.frames
        ]
    return made


def timestamp(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _request(flow: Flow, bodies: BodyStore | None, redactor: Redactor, body_bytes: int) -> dict[str, Any]:
    url = redactor.url(flow.url)
    block = views.shown_headers(flow, True, redactor)
    made: dict[str, Any] = {
        "method": flow.method,
        "url": url,
        "httpVersion": _version(flow.http_version),
        "cookies": _cookies((headers.value(block, b"cookie") or "").split(";")),
        "headers": _pairs(block),
        "queryString": [{"name": name, "value": value} for name, value in query_pairs(url)],
        "headersSize": -1,
        "bodySize": _size(flow, True, redactor),
    }
    if flow.request_body.size_bytes and body_bytes:
        content = _content(flow, True, bodies, redactor, body_bytes)
        made["postData"] = {"mimeType": content.pop("mimeType"), "params": [], **content}
        del made["postData"]["size"]
    return made


def _response(flow: Flow, bodies: BodyStore | None, redactor: Redactor, body_bytes: int) -> dict[str, Any]:
    status = flow.status or 0
    block = views.shown_headers(flow, False, redactor)
    made: dict[str, Any] = {
        "status": status,
        "statusText": HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "",
        "httpVersion": _version(flow.http_version),
        "cookies": _cookies(
            headers.text(value).partition(";")[0] for name, value in block if name.lower() == b"set-cookie"
        ),
        "headers": _pairs(block),
        "content": {"size": 0, "mimeType": headers.value(block, b"content-type") or ""},
        "redirectURL": redactor.url(headers.value(flow.response_headers, b"location") or ""),
        "headersSize": -1,
        "bodySize": _size(flow, False, redactor),
    }
    if flow.response_body.size_bytes and body_bytes:
        made["content"] = _content(flow, False, bodies, redactor, body_bytes)
    if flow.error:
        made["_error"] = flow.error
    return made


def _content(flow: Flow, from_client: bool, bodies: BodyStore | None, redactor: Redactor, most: int) -> dict[str, Any]:
    head = views.message(flow, from_client)[1]
    content = views.decoded(flow, from_client, bodies, most)
    made: dict[str, Any] = {"size": len(content.data), "mimeType": headers.value(head, b"content-type") or ""}
    found = content_coding.text_of(content.data, head)
    notes = [content.problem] if content.problem else []
    if content.is_cut or not views.is_whole(flow, from_client, bodies):
        notes.append("only the beginning of the body was kept")
    # Text is exact only when a reader, who knows no charset but the header's, gets the same bytes back.
    if found is not None and (redactor is not REVEALED or content_coding.in_charset(found[0], head) == content.data):
        made["text"] = redactor.body(found[0], headers.mime(head))
        if redactor is not REVEALED and len(found[0]) > MAX_CHARS:
            notes.append(f"only the first {MAX_CHARS} characters: secrets are searched for in no more")
        if made["text"] != found[0]:
            made["size"] = views.rough(made["size"])
    elif views.shows_secret(content.data, redactor):
        notes.append("left out: a secret can be read in it")
    else:
        made["text"] = base64.b64encode(content.data).decode()
        made["encoding"] = "base64"
    if notes:
        made["comment"] = "; ".join(notes)
    return made


def _size(flow: Flow, from_client: bool, redactor: Redactor) -> int:
    """-1 is HAR's word for a size that is not known: an exact one would give away the length of a secret."""
    body, head = views.message(flow, from_client)
    return -1 if views.hides(body, head, redactor) else body.size_bytes


def _frame(opcode: int, payload: bytes, redactor: Redactor) -> str:
    if opcode == 1:
        return redactor.body(payload.decode(errors="replace"), "")
    return "" if views.shows_secret(payload, redactor) else base64.b64encode(payload).decode()


def _pairs(block: Headers) -> list[dict[str, str]]:
    return [{"name": headers.text(name), "value": headers.text(value)} for name, value in block]


def _cookies(pairs: Iterable[str]) -> list[dict[str, str]]:
    """As they were sent, quotes too; `http.cookies` takes 3 s for 32 kB of backslashes, and all or none."""
    split = (pair.partition("=") for pair in pairs if "=" in pair)
    return [{"name": name.strip(), "value": value.strip()} for name, _, value in split]


def _version(version: str) -> str:
    return version if version.upper().startswith("HTTP/") else f"HTTP/{version}"


def _extra(flow: Flow, redactor: Redactor) -> dict[str, Any]:
    extra = {
        "id": flow.id,
        "peer": flow.peer,
        "event": flow.event,
        "upstream_status": flow.upstream_status,
        "map_local": flow.map_local,
        "map_remote": flow.map_remote,
        "map_remote_to": flow.map_remote_to and redactor.url(flow.map_remote_to),
        "rule_ids": flow.rule_ids or None,
        "status_rewrite": flow.status_rewrite,
        "process": flow.process,
        "pid": flow.pid,
        "replay_of": flow.replay_of,
        "tls": msgspec.to_builtins(flow.tls) if flow.tls else None,
    }
    return {name: value for name, value in extra.items() if value is not None}
