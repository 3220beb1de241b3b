"""One HTTP request to the MCP endpoint and its response: plain JSON, or events once the call needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dari.core.scopes import Grant
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.session import RunningRequest, Session
from dari.mcp.versions import V2025_11
from dari.rpc.codec import encode
from dari.transport.sse import EventStream, encode_event

if TYPE_CHECKING:
    from dari.transport.endpoint import McpEndpoint
    from dari.transport.http import McpProtocol

_REASONS = {
    200: b"OK", 202: b"Accepted", 204: b"No Content", 400: b"Bad Request", 401: b"Unauthorized", 403: b"Forbidden",
    404: b"Not Found", 405: b"Method Not Allowed", 406: b"Not Acceptable", 408: b"Request Timeout",
    413: b"Content Too Large", 415: b"Unsupported Media Type", 421: b"Misdirected Request",
    429: b"Too Many Requests", 431: b"Request Header Fields Too Large", 500: b"Internal Server Error",
    503: b"Service Unavailable",
}  # fmt: skip
STATUS_LINES = {status: b"HTTP/1.1 %d %b\r\n" % (status, reason) for status, reason in _REASONS.items()}
JSON_LENGTH = b"content-type: application/json\r\ncontent-length: "
_EVENTS = b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\n"
_STATELESS_STATUS = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}

UNIDENTIFIED = Grant("", frozenset())
"""Of a request whose token was not looked at yet."""


class HttpRequest(ReplyChannel):
    """Also stands in for uvicorn's request cycle, hence `response_complete`, `keep_alive` and `disconnected`."""

    # What most exchanges never change stands here, so that making one is cheap.
    transport = "http"
    grant = UNIDENTIFIED
    owns_ids = False
    headers: Mapping[bytes, bytes] | None = None
    session: Session | None = None
    body: bytes | bytearray = b""
    is_read = False
    keep_alive = True
    response_complete = False
    disconnected = False
    is_chunked = True
    expects_continue = False
    refusal: tuple[int, str] | None = None
    """What was wrong with the head: sent in turn, because pipelined answers keep their order."""
    absence = ""
    """Why there is nothing at this address; sent to authorised clients only."""
    extra_headers = b""
    peer = ""
    """Who asks: an address, or `unix`."""
    started_s = 0.0
    status_for_errors = 200
    opened: Session | None = None
    _call: RunningRequest | None = None
    _stream: EventStream | None = None
    _has_events = False

    def __init__(
        self, protocol: McpProtocol, endpoint: McpEndpoint, method: bytes, headers: Mapping[bytes, bytes]
    ) -> None:
        self.protocol = protocol
        self.endpoint = endpoint
        self.method = method
        self.fields = headers

    @property
    def can_ask(self) -> bool:  # type: ignore[override]
        return self.takes_events

    @property
    def takes_events(self) -> bool:
        return b"text/event-stream" in self.fields.get(b"accept", b"")

    @property
    def is_stateless(self) -> bool:
        return self.headers is not None

    def started(self, call: RunningRequest) -> None:
        self._call = call

    def reply(self, message: bytes, code: int = 0) -> None:
        if self._stream is not None:
            self._stream.emit(message)
            self._stream.finish()
        elif self._has_events:
            self.write_event(encode_event(message))
            self.end_events()
        elif code == 0:
            if self.opened is not None:
                self.endpoint.answered(self)
            self.send(200, message)
        else:
            self.send(_STATELESS_STATUS.get(code, 200) if self.is_stateless else self.status_for_errors, message)

    def abandon(self, message: bytes) -> None:
        self.reply(message)

    def emit(self, message: bytes) -> None:
        if not self.takes_events or (self.response_complete and self._stream is None):
            return
        if not self._has_events:
            self.open_events()
        if self._stream is not None:
            self._stream.emit(message)
        else:
            self.write_event(encode_event(message))

    async def drain(self) -> None:
        sink = None if self._stream is None else self._stream.sink
        if sink is None or sink is self:
            await self.protocol.drained()
        else:
            await sink.drain()

    def suspend(self, retry_ms: int) -> None:
        """Possible where the client knows to poll: a 2025-11-25 session with a stream that has ids."""
        if self.session is None or self.session.version != V2025_11 or not self.takes_events:
            return
        if not self._has_events:
            self.open_events()
        if self._stream is not None and self._stream.sink is self:
            self.write_event(b"retry: %d\n\n" % retry_ms)
            self._stream.detach(self)
            self.end_events()

    def open_events(self) -> None:
        """Turn the response into a stream of events."""
        self._has_events = True
        if self.session is not None:
            self._stream = self.session.streams.open()
            self._stream.sink = self
        self._start_events()
        if self._stream is not None and self.session is not None and self.session.version == V2025_11:
            self.write_event(self._stream.prime(0))

    def follow(self, stream: EventStream, after: int, *, prime: bool) -> None:
        """Serve a GET: the stream's events go to this response until either ends."""
        self._has_events = True
        self._stream = stream
        self._start_events()
        if prime:
            self.write_event(stream.prime(after))
        stream.attach(self, after)

    def keep_awake(self, now_s: float, after_s: float) -> None:
        """A call that stays silent becomes a stream with a comment now and then, so that no proxy cuts it."""
        # Not while its body still comes: that has a limit of its own, and its answer may be a status and no stream.
        if self.response_complete or not self.is_read or now_s - self.started_s < after_s or not self.takes_events:
            return
        self.started_s = now_s
        if not self._has_events:
            self.open_events()
        self.write_event(b": still here\n\n")

    def write_event(self, data: bytes) -> None:
        if not self.response_complete:
            self.protocol.write_part(data, self)

    def end_events(self) -> None:
        if not self.response_complete:
            self.response_complete = True
            self.protocol.end_parts(self)

    def give_up(self, reason: str) -> None:
        if self._call is not None:
            self._call.cancel(reason)

    def end_access(self, reason: str) -> None:
        """The token was taken away while the request was served. Calls of sessions end with their session."""
        if self.session is None:
            self.give_up(reason)
        if self._has_events:
            self.end_events()
        elif not self.response_complete:
            self.keep_alive = False
            self.refuse(401, reason)

    def lost(self) -> None:
        """The client's connection is gone. That cancels a stateless call; a session's call goes on."""
        self.disconnected = True
        self.response_complete = True
        if self._stream is not None:
            self._stream.detach(self)
        if self.is_stateless:
            self.give_up("the client disconnected")

    def refuse(self, status: int, error: str, headers: bytes = b"") -> None:
        """A failure below JSON-RPC, with the body of design 000 §5.7."""
        self.extra_headers += headers
        self.send(status, encode({"error": error}))

    def respond(self, status: int, head: bytes, body: bytes) -> None:
        """A response that another server of ours made: its own headers and its body."""
        length = b"" if status == 204 else b"content-length: %d\r\n" % len(body)
        self._finish(STATUS_LINES[status] + self._common() + head + length + b"\r\n" + body)

    def start_stream(self, status: int, head: bytes) -> None:
        """The head of a response whose body comes by `write_event` and ends with `end_events`."""
        self._has_events = True
        self.protocol.write_head(STATUS_LINES[status] + self._common() + head, self)

    def say_nothing(self) -> None:
        self.accept(202)

    def accept(self, status: int) -> None:
        """A notification or response was taken; there is nothing to say."""
        self._finish(STATUS_LINES[status] + self._common() + b"content-length: 0\r\n\r\n")

    def send(self, status: int, body: bytes) -> None:
        if self.response_complete:
            return
        if status == 200 and self.keep_alive and not self.extra_headers:
            self._finish(b"%b%d\r\n\r\n%b" % (self.protocol.plain_head(), len(body), body))
        else:
            if self.method == b"HEAD":
                body = b""
            self._finish(b"%b%b%b%d\r\n\r\n%b" % (STATUS_LINES[status], self._common(), JSON_LENGTH, len(body), body))

    def _finish(self, response: bytes) -> None:
        if not self.response_complete:
            self.response_complete = True
            # The call refers to this request: without this each request would be garbage for the cycle collector.
            self._call = None
            self.protocol.finish(response, self)

    def _start_events(self) -> None:
        self.protocol.write_head(STATUS_LINES[200] + self._common() + _EVENTS, self)

    def _common(self) -> bytes:
        common = self.protocol.date_header() + self.extra_headers
        return common if self.keep_alive else common + b"connection: close\r\n"
