"""Credentials stay with the origin they were recorded for: another scheme, host or port does not get them.

Used where another client's request is sent on: replay, map_remote, a breakpoint that changes the URL, a mock that
answers for another site. What the caller gives itself (a header that is set, a new body) is the caller's own.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from dari.errors import Conflict
from dari.proxy import headers
from dari.proxy.content_coding import Undecodable, surely_recoded
from dari.proxy.flow import Headers
from dari.text.redact import MARK, redact_body, redact_headers, redact_string, redact_url
from dari.text.redact.text import MAX_CHARS

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SECURE = {"ws": "http", "wss": "https"}


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class StrippedBody(NamedTuple):
    """What may go to another origin, and the names of what may not."""

    headers: Headers
    dropped: list[str]


def origin_of(url: str) -> Origin | None:
    """None where the text is not a URL and thus has no origin."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        port = parts.port if parts.port is not None else _PORTS.get(scheme, 0)
    except ValueError:
        return None
    return Origin(_SECURE.get(scheme, scheme), parts.hostname or "", port) if parts.hostname else None


def is_same_origin(url: str, other: str) -> bool:
    first = origin_of(url)
    return first is not None and first == origin_of(other)


def answers_same_origin(matcher: str, url: str) -> bool:
    """Does a rule with this matcher answer for the origin of the URL alone?"""
    origin = origin_of(url)
    if origin is None:
        return False
    if "://" in matcher:
        return origin_of(matcher) == origin
    return origin_of(f"{origin.scheme}://{matcher}") == origin


def without_secrets(block: Headers) -> StrippedBody:
    """The headers that hold no secret, neither by name nor by what their value looks like."""
    kept: Headers = []
    dropped: list[str] = []
    for field in block:
        if redact_headers([field]).found:
            dropped.append(headers.text(field[0]))
        else:
            kept.append(field)
    return StrippedBody(kept, list(dict.fromkeys(dropped)))


def target_without_secrets(url: str) -> str:
    """The URL with secrets in query and fragment replaced by a word that a URL may hold."""
    return redact_url(url).text.replace(MARK, "redacted")


def body_without_secrets(body: bytes, head: Headers) -> bytes:
    """The body with its secrets replaced, coded as before; the very bytes when there are none. Conflict where it cannot
    be unpacked: nobody knows what it holds, and it would go elsewhere."""

    def hidden(data: bytes) -> bytes:
        codec = headers.codec(headers.charset(head) or "utf-8") or "latin-1"
        try:
            text = data.decode(codec)
        except UnicodeError:
            # A form with a picture, a name in another charset: Latin-1 reads any bytes, and gives them back.
            codec = "latin-1"
            text = data.decode(codec)
        shown = redact_body(text, headers.mime(head)).text if len(text) <= MAX_CHARS else redact_string(text)
        return data if shown == text else shown.encode(codec)

    try:
        return surely_recoded(body, head, hidden) if body else body
    except Undecodable as error:
        raise Conflict(f"secrets in the body cannot be hidden: {error}", "give a body of your own") from error
