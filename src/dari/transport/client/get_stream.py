"""GET streams of the handshake era: the one that stands for the session, and the rest of a broken answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from dari.errors import DariError, Unavailable
from dari.transport.client.http_connection import Headers, HttpConnection
from dari.transport.client.sse import EventReader, EventTooLong

if TYPE_CHECKING:
    from dari.transport.client.http import HttpChannel

RETRY_MS = 1000
MIN_RETRY_MS = 100
"""Of what a server may ask for: with `retry: 0` it would have us connect without a pause."""
MAX_RETRY_MS = 60_000
MAX_ATTEMPTS = 5
MAX_PAUSE_S = 30.0


class GetStream:
    """One GET. `run` returns its status when either side has ended it; 0 when the connection broke."""

    def __init__(self, channel: HttpChannel, reader: EventReader, on_open: Callable[[], None] | None = None) -> None:
        self.reader = reader
        self.has_events = False
        self.was_silent = False
        """It stood, and nothing came for so long that it was given up; a caller that waits has a limit of its own."""
        self.headers: Headers = {}
        self.authorization = ""
        """With which header it was asked for."""
        self._channel = channel
        self._on_open = on_open
        self._status = 0
        self._connection: HttpConnection | None = None
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int] = self._loop.create_future()
        self._heard_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        channel = self._channel
        last = f"last-event-id: {self.reader.last_id}\r\n".encode() if self.reader.last_id else b""
        self.authorization = channel.authorization
        request = channel.request("GET", channel.address, channel.session_id, last)
        try:
            self._connection = await channel.pool.take(is_urgent=True)
            self._connection.send(self, request)
            if channel.replaces_silent_streams:
                self._timer = self._loop.call_later(channel.idle_timeout_s, self._check)
            return await self._over
        except DariError:
            return 0
        finally:
            self.stop()

    def stop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
        if self._timer is not None:
            self._timer.cancel()
        if not self._over.done():
            self._over.set_result(self._status)

    # What the connection hands in.

    def head(self, status: int, headers: Headers) -> None:
        is_stream = headers.get(b"content-type", b"").strip().lower().startswith(b"text/event-stream")
        self._status = status if status != 200 or is_stream else 405
        self.headers = headers
        if self._on_open is not None:
            self._on_open()
        if self._status != 200:
            self.stop()

    def data(self, part: bytes) -> None:
        self.has_events = True
        self._heard_s = self._loop.time()
        try:
            self.reader.feed(part)
        except EventTooLong:
            self._status = 0
            self.stop()

    def ended(self) -> None:
        self._connection = None
        self.stop()

    def broken(self, error: Unavailable, *, is_untouched: bool) -> None:
        self._connection = None
        if self._status != 200:
            self._status = 0
        self.stop()

    def _check(self) -> None:
        """A stream that was silent for long may lead nowhere: a new one costs little."""
        left_s = self._heard_s + self._channel.idle_timeout_s - self._loop.time()
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._check)
        else:
            self.was_silent = self._status == 200
            self.stop()


async def resume(channel: HttpChannel, request_id: int, before: EventReader) -> None:
    """Come back for the rest of an answer, as long as somebody waits for it."""
    inbox = channel.inbox

    def take(message: bytes) -> None:
        inbox.receive(message)
        if not inbox.is_waiting(request_id):
            stream.stop()

    reader = EventReader(take, channel.most_bytes, before.last_id)
    reader.retry_ms = before.retry_ms
    failures = 0
    while inbox.is_waiting(request_id):
        await asyncio.sleep(_pause_s(reader, failures))
        stream = GetStream(channel, reader)
        status = await stream.run()
        failures = 0 if stream.has_events or stream.was_silent else failures + 1
        if not inbox.is_waiting(request_id):
            return
        if failures >= MAX_ATTEMPTS or status not in (0, 200, 429, 500, 502, 503, 504):
            why = f"HTTP {status}" if status else "no connection"
            inbox.fail(
                request_id, Unavailable(f"the stream broke and could not be resumed ({why})", "the call may have run")
            )


async def keep_open(channel: HttpChannel, on_open: Callable[[], None]) -> None:
    """Keep the session's stream open. Returns when the server has none, or does not know the session."""
    reader = EventReader(channel.inbox.receive, channel.most_bytes)
    failures = 0
    was_open = False
    while True:
        could_resume = bool(reader.last_id)

        def opened() -> None:
            on_open()
            if was_open and not could_resume:  # noqa: B023 - called before the loop goes on
                channel.inbox.resumed()

        stream = GetStream(channel, reader, opened)
        status = await stream.run()
        on_open()
        if status == 404:
            # Of a stream that stood, the session is forgotten. Else there may be no route for GET, and a new session
            # would change nothing; a forgotten one shows at the next request.
            if was_open and channel.session_id:
                channel.inbox.session_lost()
            return
        is_worth_another = status == 429 or (status == 401 and channel.oauth is not None)
        if 300 <= status < 500 and not is_worth_another:
            return
        was_open = was_open or status == 200
        failures = 0 if stream.has_events else failures + 1
        await asyncio.sleep(_pause_s(reader, failures))


def _pause_s(reader: EventReader, failures: int) -> float:
    """What the server asked for, or a second; longer after every failure."""
    asked_ms = RETRY_MS if reader.retry_ms is None else max(reader.retry_ms, MIN_RETRY_MS)
    asked_s = min(asked_ms, MAX_RETRY_MS) / 1000
    if failures == 0:
        return asked_s
    return min(max(asked_s, 0.1) * float(2 ** min(failures, 10)), MAX_PAUSE_S) * random.uniform(1.0, 1.25)
