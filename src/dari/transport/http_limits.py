"""What the head of an HTTP request may be: how long, and which headers may come only once."""

from __future__ import annotations

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100

Headers = list[tuple[bytes, bytes]]
Refusal = tuple[int, str]

# Two of one of these and two readers may disagree about which one counts.
_SINGLE = frozenset({b"host", b"authorization", b"origin", b"content-type", b"last-event-id"})


def check_length(url: bytes, headers: Headers) -> Refusal | None:
    """The refusal of a head beyond the limits."""
    if len(headers) > MAX_HEADERS:
        return 431, f"more than {MAX_HEADERS} headers"
    size_bytes = len(url) + sum(len(name) + len(value) + 4 for name, value in headers)
    return (431, f"the head is longer than {MAX_HEAD_BYTES} bytes") if size_bytes > MAX_HEAD_BYTES else None


def join_headers(headers: Headers) -> tuple[dict[bytes, bytes], Refusal | None]:
    """Headers that came more than once as one list, and the refusal when one of them must not."""
    fields: dict[bytes, bytes] = {}
    refusal = None
    for name, value in headers:
        if name not in fields:
            fields[name] = value
        elif name in _SINGLE or name.startswith(b"mcp-"):
            refusal = refusal or (400, f"header {name.decode('latin-1')} appears more than once")
        else:
            fields[name] += b", " + value
    return fields, refusal
