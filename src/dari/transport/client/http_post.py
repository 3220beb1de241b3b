"""One message on its way to an HTTP server, and what comes back for it."""

from __future__ import annotations

import asyncio
import logging
from enum import Enum, auto
from typing import TYPE_CHECKING

from dari.errors import DariError, Failed, Unavailable
from dari.mcp.client.errors import SessionExpired
from dari.mcp.client.oauth import HttpRefusal
from dari.transport.client.http_connection import Headers, HttpConnection
from dari.transport.client.http_errors import begins_as_json, is_lost_session, not_mcp, to_error
from dari.transport.client.sse import EventReader, EventTooLong

if TYPE_CHECKING:
    from dari.transport.client.http import HttpChannel

MAX_REDIRECTS = 5
MAX_ERROR_BYTES = 64 * 1024
MAX_PARTS = 64
"""Of an answer; the rest is one buffer: a million parts of two bytes would take twenty times their size."""
NOTIFY_TIMEOUT_S = 30.0
LINGER_S = 2.0
_log = logging.getLogger("dari.transport")


class _Kind(Enum):
    """What a response turned out to be, by its head."""

    JSON = auto()
    EVENTS = auto()
    EMPTY = auto()
    REFUSAL = auto()


class Post:
    """A request (with an id) or a notification or answer (without). Takes the response as it comes."""

    def __init__(self, channel: HttpChannel, request_id: int | None, body: bytes, headers: bytes) -> None:
        self.request_id = request_id
        self.reader: EventReader | None = None
        self._channel = channel
        self._body = body
        self._headers = headers
        self._target = channel.address
        self._connection: HttpConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._kind = _Kind.EMPTY
        self._parts: list[bytes | bytearray] = []
        self._size_bytes = 0
        self._redirects = 0
        # The session it belongs to, even if that is forgotten before a connection is free.
        self._session_id = channel.session_id
        self._authorization = ""
        self._was_resent = self._was_authorized = self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        if request_id is None:
            self._timer = asyncio.get_running_loop().call_later(NOTIFY_TIMEOUT_S, self.abort)

    def start(self, *, is_fresh: bool = False) -> None:
        """Send it: now if a connection is free, else as soon as there is one."""
        connection = None if is_fresh else self._channel.pool.idle()
        if connection is not None:
            self._send(connection)
        else:
            self._connecting = self._channel.spawn(self._connect(is_fresh))

    def abort(self) -> None:
        """Nobody wants the response; hanging up tells a server of the stateless era to stop."""
        if not self._is_over:
            self._finish()
            if self._connection is not None:
                self._connection.abort()
            elif self._connecting is not None:
                self._connecting.cancel()

    # What the connection hands in.

    def head(self, status: int, headers: Headers) -> None:
        self._status, self._response = status, headers
        self._parts, self._size_bytes = [], 0
        content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if status >= 300:
            self._kind = _Kind.REFUSAL
        elif self.request_id is None or status == 204:
            self._kind = _Kind.EMPTY
        elif status == 202 and content_type not in (b"application/json", b"text/event-stream"):
            self._kind = _Kind.EMPTY  # CrewX says "accepted" above the answer itself
        elif headers.get(b"content-encoding", b"identity").lower() != b"identity":
            self._give_up(
                Failed("the answer is compressed, which was not asked for", "report it to the server's author")
            )
        elif content_type == b"text/event-stream":
            self._kind = _Kind.EVENTS
            self.reader = EventReader(self._message, self._channel.most_bytes)
        else:
            self._kind = _Kind.JSON
        if status < 300:
            self._channel.address = self._target
            if not self._headers:
                self._channel.learn_session(headers.get(b"mcp-session-id", b""))

    def data(self, part: bytes) -> None:
        if self._kind is _Kind.EVENTS:
            assert self.reader is not None
            try:
                self.reader.feed(part)
            except EventTooLong as error:
                self._give_up(Failed(str(error), "ask for less at once"))
        elif self._kind is _Kind.JSON:
            self._size_bytes += len(part)
            if self._size_bytes > self._channel.most_bytes:
                limit = f"the answer has more than {self._channel.most_bytes} bytes"
                self._give_up(Failed(limit, "ask for less at once"))
            else:
                self._keep(part)
        elif self._kind is _Kind.REFUSAL and self._size_bytes < MAX_ERROR_BYTES:
            self._size_bytes += len(part)
            self._keep(part)

    def _keep(self, part: bytes) -> None:
        if len(self._parts) < MAX_PARTS:
            self._parts.append(part)
        elif len(self._parts) == MAX_PARTS:
            self._parts.append(bytearray(part))
        else:
            self._parts[-1] += part

    def ended(self) -> None:
        self._connection = None
        if self._is_over:
            self._stop_timer()
            return
        if self._kind is _Kind.REFUSAL:
            self._refused(b"".join(self._parts))
            return
        if self._kind is _Kind.EVENTS:
            self._stream_ended(Unavailable("the server ended the stream without an answer", "the call may have run"))
            return
        self._finish()
        inbox = self._channel.inbox
        body = b"".join(self._parts[:1])
        if self._kind is _Kind.JSON and self.request_id is not None and not begins_as_json(body):
            inbox.fail(self.request_id, not_mcp(self._target, self._status, self._response, b"".join(self._parts)))
        elif self._kind is _Kind.JSON and self._parts:
            inbox.receive(bytes(self._parts[0]) if len(self._parts) == 1 else b"".join(self._parts))
        if self.request_id is not None and inbox.is_waiting(self.request_id):
            missing = Failed(f"HTTP {self._status} came without the answer", "check that the URL is an MCP server's")
            inbox.fail(self.request_id, missing)

    def broken(self, error: Unavailable, *, is_untouched: bool) -> None:
        self._connection = None
        if self._is_over:
            self._stop_timer()
            return
        if is_untouched and not self._was_resent:
            self._was_resent = True
            self.start(is_fresh=True)
        elif self._kind is _Kind.EVENTS:
            self._stream_ended(error)
        else:
            self._fail(error)

    def _message(self, message: bytes) -> None:
        inbox = self._channel.inbox
        inbox.receive(message)
        if self._is_over or self.request_id is None or inbox.is_waiting(self.request_id):
            return
        # The answer is here. A server ends its stream now, and the connection is free again; one that does not is cut.
        connection = self._connection
        self._finish()
        if connection is not None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_S, connection.abort)

    def _stream_ended(self, error: Unavailable) -> None:
        assert self.reader is not None and self.request_id is not None
        if not self._channel.inbox.is_waiting(self.request_id):
            self._finish()
        elif self.reader.last_id and not self._channel.is_stateless:
            self._finish()
            self._channel.resume(self.request_id, self.reader)
        else:
            self._fail(error)

    def _refused(self, body: bytes) -> None:
        channel = self._channel
        where = self._response.get(b"location", b"").decode("latin-1")
        if self._status in (307, 308) and self._redirects < MAX_REDIRECTS:
            target = self._target.redirected(where)
            if target is not None:
                self._redirects += 1
                self._target = target
                self._again()
                return
        asks = self._status == 401 or (self._status == 403 and b"insufficient_scope" in self._challenge())
        if is_lost_session(self._status, body) and self._session_id and not channel.is_stateless:
            channel.forget_session(self._session_id)
            self._fail(SessionExpired("the server has forgotten the session", "open a new one"))
        elif asks and channel.oauth is not None and not self._was_authorized:
            self._was_authorized = True
            channel.spawn(self._authorize(body))
        elif self._status not in (401, 403) and self.request_id is not None:
            if channel.inbox.refused(self.request_id, body):
                self._finish()
            else:
                self._fail(self._error(body))
        else:
            self._fail(self._error(body))

    def _error(self, body: bytes) -> DariError:
        token = self._authorization.partition(" ")[2]
        hint = self._channel.denied_hint
        return to_error(self._target, self._status, self._response, body, token=token, denied_hint=hint)

    def _challenge(self) -> bytes:
        return self._response.get(b"www-authenticate", b"")

    async def _authorize(self, body: bytes) -> None:
        oauth = self._channel.oauth
        assert oauth is not None
        refusal = HttpRefusal(self._status, self._response, body, self._authorization, self._channel.version)
        inbox = self._channel.inbox
        inbox.hold()
        try:
            await oauth.authorize(refusal)
        except DariError as error:
            self._fail(error)
            return
        finally:
            inbox.release()
        if not self._is_over:
            self._again()

    def _again(self) -> None:
        """It was answered, so this is another request: a kept connection may fail it once more."""
        self._was_resent = False
        self.start()

    async def _connect(self, is_fresh: bool) -> None:
        pool = self._channel.pool
        try:
            connection = await pool.take(is_urgent=self.request_id is None, is_fresh=is_fresh)
        except DariError as error:
            self._fail(error)
            return
        if self._is_over:
            pool.give_back(connection)
        else:
            self._send(connection)

    def _send(self, connection: HttpConnection) -> None:
        channel = self._channel
        try:
            self._authorization = channel.authorization
            request = channel.request("POST", self._target, self._session_id, self._headers, self._body)
        except Exception as error:  # a function that gives the token may do anything
            channel.pool.give_back(connection)
            self._fail(Unavailable(f"the request could not be made: {error}", "check what gives the token"))
            return
        self._connection = connection
        connection.send(self, request)

    def _give_up(self, error: DariError) -> None:
        connection = self._connection
        self._fail(error)
        if connection is not None:
            connection.abort()

    def _fail(self, error: DariError) -> None:
        if self._is_over:
            return
        self._finish()
        if self.request_id is not None:
            self._channel.inbox.fail(self.request_id, error)
        else:
            _log.debug("transport=client event=not_delivered %s", error.message)

    def _finish(self) -> None:
        self._is_over = True
        self._stop_timer()
        self._channel.finished(self)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
