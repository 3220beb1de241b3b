"""Flows as the engine would leave them, and a redactor that hides one word."""

from __future__ import annotations

from typing import Any

from dari.proxy.flow import SAMPLE_BYTES, Body, Flow, Headers
from dari.text.redact import Redactor

SECRET = "hunter2"
NOW_MS = 1_790_000_000_000


def body(data: bytes) -> Body:
    return Body(len(data), data[:SAMPLE_BYTES], outcome="complete")


def flow(
    flow_id: int = 1,
    url: str = "http://api.test/items",
    method: str = "GET",
    status: int | None = 200,
    *,
    request: bytes = b"",
    response: bytes = b'{"ok":true}',
    request_headers: Headers | None = None,
    response_headers: Headers | None = None,
    **more: Any,
) -> Flow:
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    made = Flow(flow_id, "127.0.0.1:5000", NOW_MS + flow_id * 10, method, scheme, authority, slash + path or "/")
    made.request_headers = request_headers or [(b"Host", authority.encode()), (b"Accept", b"*/*")]
    made.request_body = body(request)
    made.state = "done"
    if status is not None:
        made.status = made.upstream_status = status
        made.response_headers = response_headers or [(b"Content-Type", b"application/json")]
        made.response_body = body(response)
        made.head_ms, made.total_ms = 5.0, 8.0
    for name, value in more.items():
        setattr(made, name, value)
    return made


def running(flow_id: int = 1, **more: Any) -> Flow:
    made = flow(flow_id, status=None, **more)
    made.state = "request"
    return made


def tunnel(flow_id: int = 1) -> Flow:
    made = flow(flow_id, "https://secret.test:443", "CONNECT", None, event="tunnel", is_encrypted=True)
    made.target = ""
    return made


class Hiding(Redactor):
    """Hides `hunter2` wherever it stands."""

    def headers(self, headers: Headers) -> Headers:
        return [(name, value.replace(SECRET.encode(), b"<redacted>")) for name, value in headers]

    def url(self, url: str) -> str:
        return url.replace(SECRET, "<redacted>")

    def body(self, text: str, mime: str) -> str:
        return text.replace(SECRET, "<redacted>")
