"""Header lists of HTTP/2, sans-I/O: checked as strictly as the heads of HTTP/1.1, and turned into them and back."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dari.proxy.engine.heads import (
    CHUNKED,
    HOP,
    MAX_HEADERS,
    MAX_RESPONSE_HEADERS,
    BadHead,
    RequestHead,
    ResponseHead,
    joined,
    read_response_head,
    without,
)
from dari.proxy.engine.local_response import may_have_body, status_line
from dari.proxy.engine.targets import RequestTarget, target_of
from dari.proxy.flow import Headers
from dari.transport.authority import parse_authority

Fields = Iterable[tuple[bytes, bytes]]

_REQUEST = frozenset((b":method", b":scheme", b":authority", b":path"))
_RESPONSE = frozenset((b":status",))
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$")
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Z-]{1,40}")
_PATH = re.compile(rb"/[\x21\x22\x24-\x7e]*")
_STATUS = re.compile(rb"[1-9][0-9]{2}")
_LENGTH = re.compile(rb"[0-9]{1,18}")
# RFC 9113, 8.2.2: these belong to one hop of HTTP/1.1; a message with one of them is malformed.
_CONNECTION = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_FORBIDDEN_TRAILERS = frozenset((b"content-length", b"host", b"te", b"expect", b"trailer", *_CONNECTION))
# A server may take a missing length for a missing body, and answer 411.
_BODY_METHODS = frozenset(("POST", "PUT", "PATCH"))


def _split(fields: Fields, known: frozenset[bytes], limit: int) -> tuple[dict[bytes, bytes], Headers]:
    """Pseudo-headers and the others. Raises BadHead."""
    pseudo: dict[bytes, bytes] = {}
    headers: Headers = []
    for name, value in fields:
        name, value = bytes(name), bytes(value)
        if _BAD_VALUE.search(value):
            raise BadHead(f"the value of {name[:40]!r} holds a control character or begins or ends with a space")
        if name[:1] == b":":
            if name not in known or name in pseudo or headers:
                raise BadHead(f"unknown, repeated or late pseudo-header {name[:40]!r}")
            pseudo[name] = value
        elif _NAME.fullmatch(name) is None:
            raise BadHead(f"bad header name {name[:40]!r}")
        elif name in _CONNECTION or (name == b"te" and value.lower() != b"trailers"):
            raise BadHead(f"{name.decode('ascii')} has no place in HTTP/2")
        else:
            headers.append((name, value))
    if len(headers) > limit:
        raise BadHead(f"more than {limit} headers", 431)
    return pseudo, headers


def content_length(headers: Headers) -> int | None:
    found = [value for name, value in headers if name == b"content-length"]
    if not found:
        return None
    if len(found) > 1 or not _LENGTH.fullmatch(found[0]):
        raise BadHead("bad or repeated content-length")
    return int(found[0])


def trailers_of(fields: Fields) -> Headers:
    """Raises BadHead."""
    _, headers = _split(fields, frozenset(), MAX_HEADERS)
    for name, _ in headers:
        if name in _FORBIDDEN_TRAILERS:
            raise BadHead(f"{name.decode('ascii')} in trailers")
    return headers


class StreamHead(RequestHead):
    """A request of HTTP/2 that passed every check. Its headers carry the framing that HTTP/1.1 needs for its body."""

    __slots__ = ("recorded", "target")

    def __init__(self, fields: Fields, scheme: str) -> None:
        pseudo, headers = _split(fields, _REQUEST, MAX_HEADERS)
        method, path = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
        if _METHOD.fullmatch(method) is None or method == b"CONNECT":
            raise BadHead(f"method {method[:40]!r} is not served in a tunnel")
        if pseudo.get(b":scheme") != scheme.encode("ascii"):
            raise BadHead(f"the scheme {pseudo.get(b':scheme', b'')[:20]!r} is not the connection's")
        if _PATH.fullmatch(path) is None and not (path == b"*" and method == b"OPTIONS"):
            raise BadHead(f"bad path {path[:80]!r}")
        hosts = [value for name, value in headers if name == b"host"]
        authority = pseudo.get(b":authority") or (hosts[0] if hosts else b"")
        if any(host != authority for host in hosts) or len(hosts) > 1:
            raise BadHead("two Host headers, or one that contradicts :authority")
        self.method = method.decode("ascii")
        self.url = path
        self.version = "2"
        self.raw = b""
        self.kept = None
        self.keep_alive = True
        self.upgrade = None
        self.authority = parse_authority(authority)
        self.target: RequestTarget = target_of(path, scheme, self.authority)
        self.headers = _one_cookie(headers)
        self.recorded = self.headers
        """As the client sent them; `headers` may say more about the body."""
        self.drop = {name for name, _ in headers if name in HOP} or None
        length = content_length(headers)
        self.length = CHUNKED if length is None else length
        self.expects_continue = any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)

    def frame(self, size: int | None) -> None:
        """Say how long the body is: `size` when all of it is here, else as the client did, else in chunks."""
        if self.length != CHUNKED:
            return
        if size is None:
            self.headers = [*self.headers, (b"Transfer-Encoding", b"chunked")]
            return
        self.length = size
        if size or self.method in _BODY_METHODS:
            self.headers = [*self.headers, (b"Content-Length", b"%d" % size)]


def _one_cookie(headers: Headers) -> Headers:
    """RFC 9113, 8.2.3: crumbs of a cookie are one header outside of HTTP/2."""
    crumbs = [value for name, value in headers if name == b"cookie"]
    if len(crumbs) < 2:
        return headers
    place = next(index for index, field in enumerate(headers) if field[0] == b"cookie")
    rest = without(headers[place:], (b"cookie",))
    return [*headers[:place], (b"cookie", b"; ".join(crumbs)), *rest]


def request_fields(head: RequestHead, scheme: str) -> Headers:
    """A request's head of HTTP/1.1, as `request_heads` wrote it, for HTTP/2."""
    assert head.authority is not None  # there is always a Host
    path = target_of(head.url, scheme, head.authority).path
    return [
        (b":method", head.method.encode("ascii")),
        (b":scheme", scheme.encode("ascii")),
        (b":authority", head.authority.text.encode("ascii")),
        (b":path", path),
        *plain_fields(head.headers, (b"host",)),
    ]


def plain_fields(headers: Headers, drop: Iterable[bytes] = ()) -> Headers:
    """Without what HTTP/2 says in other ways."""
    lower = [(name.lower(), value.strip()) for name, value in headers]
    return [
        field
        for field in lower
        if field[0] not in _CONNECTION and field[0] not in drop and (field[0] != b"te" or field[1] == b"trailers")
    ]


def response_head(fields: Fields, method: str, is_ended: bool, adds_framing: bool) -> ResponseHead:
    """An origin's response, as a head of HTTP/1.1: through its parser, so that nothing in it can become a second line.

    Raises BadHead. With `adds_framing` a body of unknown length is in chunks; without, it ends with its stream.
    """
    pseudo, headers = _split(fields, _RESPONSE, MAX_RESPONSE_HEADERS)
    digits = pseudo.get(b":status", b"")
    if _STATUS.fullmatch(digits) is None or digits == b"101":
        raise BadHead(f"bad status {digits[:20]!r}")
    status = int(digits)
    if adds_framing and content_length(headers) is None and may_have_body(status, method):
        headers.append((b"Content-Length", b"0") if is_ended else (b"Transfer-Encoding", b"chunked"))
    return read_response_head(joined(status_line(status), headers), method)
