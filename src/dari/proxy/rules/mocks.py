"""A rule that answers with a response seen before."""

from __future__ import annotations

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.rules.rule import Mock

_NOT_COPIED = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "content-length", "content-encoding", "date", "x-crab-mitm", "x-crab-mitm-status-rewrite"),
    }
)


def mock_of(flow: Flow, body: bytes, matcher: str | None = None, *, is_encoded: bool = False) -> Mock:
    """Answer such requests as this one was answered. `body` is decoded unless it `is_encoded` as it went by.

    Without a matcher: the same method and URL, whatever the query.
    """
    if flow.status is None:
        raise InvalidInput(f"request {flow.id} has no response to copy", "pick one that was answered")
    dropped = _NOT_COPIED - {"content-encoding"} if is_encoded else _NOT_COPIED
    headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in flow.response_headers)
    return Mock(
        matcher=matcher if matcher is not None else flow.url.partition("?")[0],
        method=flow.method if matcher is None else None,
        status_code=flow.status,
        headers=tuple((name, value) for name, value in headers if name.lower() not in dropped),
        body=body,
    )
