"""Message heads, sans-I/O: llhttp reads them, the checks here decide framing and what may go on.

A head is refused unless every receiver would read it alike; what a hop may not pass on is named in `drop`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import httptools

from dari.proxy.engine.hooks import HeaderEdits
from dari.proxy.engine.targets import BadTarget
from dari.proxy.flow import Headers
from dari.transport.authority import Authority, parse_authority

HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100
# Origins are more talkative than clients: one Set-Cookie each, policies, timings.
MAX_RESPONSE_HEADERS = 500

CHUNKED = -1
UNTIL_CLOSE = -2

# Any method of capitals: a lower-case one is a mistake or a trick, since methods are compared with their case.
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Z-]{1,40}) ([\x21-\x7e]+) HTTP/1\.([01])\r\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n")
_KEEP_ALIVE_LINES = re.compile(
    rb"^(?:connection|keep-alive|proxy-connection):[^\r\n]*\r\n", re.IGNORECASE | re.MULTILINE
)
_KEEP_ALIVE = frozenset((b"connection", b"keep-alive", b"proxy-connection"))
_LENGTH = re.compile(rb"[0-9]{1,18}")
_WORDS = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Naming one of these in Connection would make us change the framing or the routing of the message.
_NOT_HOP = frozenset((b"content-length", b"transfer-encoding", b"host"))
HOP = frozenset(
    (
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authorization",
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"http2-settings",
    )
)
_MET = frozenset((*HOP, b"host", b"content-length", b"transfer-encoding", b"connection", b"te", b"upgrade", b"expect"))


_Kind = type[httptools.HttpRequestParser] | type[httptools.HttpResponseParser]


class BadHead(ValueError):
    """`status` is what a client gets for such a request."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


@lru_cache(maxsize=256)
def _tokens(value: bytes) -> frozenset[bytes]:
    """The words of a Connection header; never empty, so that an empty header is dropped as well."""
    return frozenset(word.lower() for word in _WORDS.findall(value)) or frozenset((b"",))


class _Fields:
    """A block of header lines: llhttp checks and splits it; what decides framing and routing is noted on the way."""

    __slots__ = ("drop", "expects_continue", "headers", "host", "kept", "length", "tokens", "upgrade")

    def __init__(self, kind: _Kind, line: bytes, block: bytes) -> None:
        self.headers: Headers = []
        self.host: bytes | None = None
        self.length: int | None = None
        self.tokens: frozenset[bytes] = frozenset()
        self.upgrade: bytes | None = None
        self.expects_continue = False
        self.drop: set[bytes] | None = None
        """Lower-case names that stay on this hop; None when there are none."""
        try:
            kind(self).feed_data(line + block)
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError as error:
            cause = error.__context__
            raise cause if isinstance(cause, BadHead) else BadHead(str(error) or type(error).__name__) from error
        limit = MAX_HEADERS if kind is httptools.HttpRequestParser else MAX_RESPONSE_HEADERS
        if len(self.headers) > limit:
            raise BadHead(f"more than {limit} headers", 431)
        if self.tokens:
            self._leave_out_connection()
        self.kept: bytes | None = block
        """The lines as they were, without those that only keep this hop alive; None when others must go, too."""
        if self.drop is not None:
            self.kept = _KEEP_ALIVE_LINES.sub(b"", block) if self.drop <= _KEEP_ALIVE else None

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))
        name = name.lower()
        if name in _MET:
            self._meet(name, value)

    def _meet(self, name: bytes, value: bytes) -> None:
        if name == b"host":
            if self.host is not None:
                raise BadHead("two Host headers")
            self.host = value.strip()
        elif name == b"content-length":
            if self.length is not None or not _LENGTH.fullmatch(value.strip()):
                raise BadHead("bad, repeated or contradicted Content-Length")
            self.length = int(value)
        elif name == b"transfer-encoding":
            if self.length is not None or value.strip().lower() != b"chunked":
                raise BadHead("Transfer-Encoding is not exactly one 'chunked', or stands beside Content-Length")
            self.length = CHUNKED
        elif name == b"connection":
            self.tokens |= _tokens(value)
        elif name == b"expect":
            self.expects_continue = value.strip().lower() == b"100-continue"
        elif name == b"upgrade":
            self.upgrade = value.strip().lower()
            self._leave_out(name)
        elif name == b"te":
            if value.strip().lower() != b"trailers":
                self._leave_out(name)
        else:
            if name == b"proxy-connection" and not self.tokens:
                self.tokens = _tokens(value) & {b"close", b"keep-alive"}
            self._leave_out(name)

    def _leave_out(self, name: bytes) -> None:
        if self.drop is None:
            self.drop = set()
        self.drop.add(name)

    def _leave_out_connection(self) -> None:
        if not self.tokens.isdisjoint(_NOT_HOP):
            raise BadHead("Connection names a header that is not hop-by-hop")
        self._leave_out(b"connection")
        for word in self.tokens:
            if word != b"te":
                self._leave_out(word)


# Larger blocks are not kept: 1,024 of them would be 64 MB.
_REPEATED_BYTES = 2048


@lru_cache(maxsize=1024)
def _request_fields(block: bytes) -> _Fields:
    """A client sends the same header lines with most of its requests: they are checked once."""
    return _Fields(httptools.HttpRequestParser, b"GET / HTTP/1.1\r\n", block)


class RequestHead:
    """A request's head that passed every check."""

    __slots__ = (
        "authority",
        "drop",
        "expects_continue",
        "headers",
        "keep_alive",
        "kept",
        "length",
        "method",
        "raw",
        "upgrade",
        "url",
        "version",
    )

    def __init__(self, raw: bytes) -> None:
        found = _REQUEST_LINE.match(raw)
        if found is None:
            raise _bad_line(raw)
        method, self.url, version = found.groups()
        self.raw = raw
        block = raw[found.end() :]
        fields = _request_fields(block) if len(block) <= _REPEATED_BYTES else _request_fields.__wrapped__(block)
        self.headers = fields.headers.copy()
        self.kept = fields.kept
        self.method = method.decode("ascii")
        self.drop = fields.drop
        self.length = fields.length or 0
        self.upgrade = fields.upgrade if fields.upgrade and b"upgrade" in fields.tokens else None
        if version == b"1":
            self.version = "1.1"
            self.keep_alive = b"close" not in fields.tokens
            self.expects_continue = fields.expects_continue
            if fields.host is None:
                raise BadHead("HTTP/1.1 without a Host header")
        else:
            self.version = "1.0"
            self.keep_alive = b"keep-alive" in fields.tokens
            self.expects_continue = False
            if self.length == CHUNKED:
                raise BadHead("Transfer-Encoding in HTTP/1.0")
        self.authority: Authority | None = None
        if fields.host:
            try:
                self.authority = parse_authority(fields.host)
            except BadTarget as error:
                raise BadHead(f"Host: {error}") from error


def _bad_line(raw: bytes) -> BadHead:
    parts = raw.partition(b"\r\n")[0].split(b" ")
    if len(parts) == 3 and re.fullmatch(rb"HTTP/[0-9]\.[0-9]", parts[2]) and parts[2][5:] not in (b"1.1", b"1.0"):
        return BadHead("only HTTP/1.1 and HTTP/1.0 are spoken here", 505)
    return BadHead("bad request line")


class ResponseHead:
    """A response's head that passed every check. `length` is what follows it: bytes, CHUNKED or UNTIL_CLOSE.

    Responses may share one (`read_response_head`): it is never changed, and a flow has a copy of its headers.
    """

    __slots__ = ("drop", "headers", "keep_alive", "kept", "length", "raw", "reason", "status", "upgrade", "version")

    def __init__(self, raw: bytes, method: str) -> None:
        found = _STATUS_LINE.match(raw)
        if found is None:
            raise BadHead("bad status line")
        version, status, reason = found.groups()
        self.raw = raw
        self.status = int(status)
        self.reason = reason or b""
        line_end = found.end()
        block = raw[line_end:]
        fields = _Fields(httptools.HttpResponseParser, b"HTTP/1.1 200 OK\r\n", block)
        self.headers = fields.headers
        self.drop = fields.drop
        self.kept = raw if fields.drop is None else fields.kept and raw[:line_end] + fields.kept
        """The head as it may go on; None when it has to be put together anew."""
        if version == b"1":
            self.version = "1.1"
            self.keep_alive = b"close" not in fields.tokens
        else:
            self.version = "1.0"
            self.keep_alive = b"keep-alive" in fields.tokens
            if fields.length == CHUNKED:
                raise BadHead("Transfer-Encoding in HTTP/1.0")
        self.upgrade = fields.upgrade if self.status == 101 else None
        if self.status < 200 or self.status == 204:
            if fields.length is not None:
                # A body there would be read as the next response by a client that believes the header.
                self.drop = (self.drop or set()) | {b"content-length", b"transfer-encoding"}
                self.kept = None
            self.length = 0
        elif self.status == 304 or method == "HEAD":
            self.length = 0
        else:
            self.length = UNTIL_CLOSE if fields.length is None else fields.length
        if self.length == UNTIL_CLOSE:
            self.keep_alive = False


_repeated_response_head = lru_cache(maxsize=1024)(ResponseHead)


def read_response_head(raw: bytes, method: str) -> ResponseHead:
    """An origin that is polled answers with the same head for as long as its Date stays: it is checked once."""
    return _repeated_response_head(raw, method) if len(raw) <= _REPEATED_BYTES else ResponseHead(raw, method)


def head_end(buffer: bytes | bytearray) -> int:
    """Where the head ends, or -1 while it may still come. Raises BadHead for what can never become one."""
    end = buffer.find(b"\r\n\r\n")
    if end >= 0:
        if end + 4 > HEAD_BYTES:
            raise _too_large(buffer)
        return end + 4
    if len(buffer) > HEAD_BYTES:
        raise _too_large(buffer)
    # Waiting for the end of such a head would leave its sender without an answer.
    if buffer.count(b"\n") != buffer.count(b"\r\n"):
        raise BadHead("a line ends in LF without CR")
    return -1


def _too_large(buffer: bytes | bytearray) -> BadHead:
    if 0 <= buffer.find(b"\r\n") < HEAD_BYTES - 1024:
        return BadHead(f"the head has more than {HEAD_BYTES} bytes", 431)
    return BadHead(f"the URL has almost {HEAD_BYTES} bytes or more", 414)


def without(headers: Headers, drop: Iterable[bytes]) -> Headers:
    return [field for field in headers if field[0].lower() not in drop]


def edited(headers: Headers, edits: HeaderEdits) -> Headers:
    """Raises BadHead for a name or a value that would become more than one header."""
    check_fields((*edits.replace, *edits.add))
    changed = {name.lower() for name in edits.remove} | {name.lower() for name, _ in edits.replace}
    return [*without(headers, changed), *edits.replace, *edits.add]


def check_fields(fields: Iterable[tuple[bytes, bytes]]) -> None:
    for name, value in fields:
        if not _WORDS.fullmatch(name) or re.search(rb"[\r\n\0]", value):
            raise BadHead(f"a rule or an edit made the bad header {name[:40]!r}", 502)


def joined(line: bytes, headers: Headers) -> bytes:
    """A head on the wire. Its parts were parsed or went through `check_fields`, so none holds CR or LF."""
    parts = [line]
    for name, value in headers:
        parts += (b"\r\n", name, b": ", value)
    parts.append(b"\r\n\r\n")
    return b"".join(parts)
