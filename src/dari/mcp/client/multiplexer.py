"""Requests out, answers in: who waits for what, on any channel."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from dari.core.context import Progress
from dari.errors import DariError, Failed, TimedOut, Unavailable
from dari.mcp.client.callbacks import ServerRequests
from dari.mcp.client.channel import Channel
from dari.mcp.client.decode import Incoming, decode_incoming, read, read_error
from dari.mcp.client.errors import copy_error
from dari.mcp.client.events import Feed, read_event, subscription_of
from dari.mcp.client.lines import find_request_id
from dari.mcp.client.pending import FOREVER, OnNotice, OnProgress, PendingCall, PendingCalls
from dari.mcp.client.versions import Era, HandshakeEnvelope
from dari.rpc.codec import (
    UNREADABLE,
    decode_any,
    decode_batch,
    decode_sloppy,
    encode,
    is_utf8,
    notification_message,
)

_MAX_NOISE_LINES = 20
_log = logging.getLogger("dari.mcp.client")


class MessageMultiplexer:
    """One server. Every answer goes to its caller by id; one that comes late is dropped."""

    def __init__(
        self,
        channel: Channel,
        questions: ServerRequests,
        feed: Feed,
        *,
        on_session_lost: Callable[[], None],
        on_hold: Callable[[bool], None],
    ) -> None:
        self.era: Era = HandshakeEnvelope()
        self.ended: asyncio.Future[DariError] = asyncio.get_running_loop().create_future()
        self.noise: deque[str] = deque(maxlen=_MAX_NOISE_LINES)
        self._channel = channel
        self._questions = questions
        questions.clocks = self
        self._feed = feed
        self._on_session_lost = on_session_lost
        self._on_hold = on_hold
        self._calls = PendingCalls(self._expire)
        self._last_id = 0

    async def ask(
        self,
        method: str,
        params: bytes,
        *,
        headers: bytes = b"",
        timeout_s: float,
        on_progress: OnProgress | None = None,
        on_notice: OnNotice | None = None,
        era: Era | None = None,
    ) -> Raw:
        """Send a request and wait for its result. Cancelling the caller cancels the request."""
        if self._channel.is_full:
            await self._drain(timeout_s)
        if self.ended.done():
            raise copy_error(self.ended.result())
        self._last_id = request_id = self._last_id + 1
        wrapped = (era or self.era).wrap(params, None if on_progress is None else request_id)
        message = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}' % (request_id, encode(method), wrapped)
        future = self._calls.add(request_id, method, timeout_s, on_progress, on_notice)
        try:
            self._channel.ask(request_id, message, headers)
            return await future
        except asyncio.CancelledError:
            self._give_up(request_id, "the caller does not wait any more")
            raise
        finally:
            self._calls.remove(request_id)

    @property
    def takes_now(self) -> bool:
        """Whether `begin` may be called."""
        return not self._channel.is_full and not self.ended.done()

    def begin(self, method: str, params: bytes, timeout_s: float) -> tuple[int, asyncio.Future[Raw]]:
        """`ask` without waiting, for a pipe: its id, and the future of its result. When that is done, `end` it."""
        self._last_id = request_id = self._last_id + 1
        wrapped = self.era.wrap(params, None)
        message = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}' % (request_id, encode(method), wrapped)
        future = self._calls.add(request_id, method, timeout_s, None, None)
        self._channel.ask(request_id, message, b"")
        return request_id, future

    def end(self, request_id: int, future: asyncio.Future[Raw]) -> None:
        """The other half of `begin`: cancel a request at the server when its future was cancelled."""
        if future.cancelled():
            self._give_up(request_id, "the caller does not wait any more")
        self._calls.remove(request_id)

    @property
    def is_held(self) -> bool:
        """Whether a person is asked for permission, and time limits stand still."""
        return self._calls.is_held

    def tell(self, method: str, params: Any = None, headers: bytes = b"") -> None:
        """Send a notification."""
        if not self.ended.done():
            self._channel.tell(notification_message(method, params), headers)

    async def close(self) -> None:
        """Fail what waits, stop answering."""
        self.lost(Unavailable("the client was closed", "open a new one"))
        await self._questions.close()

    def restart(self) -> None:
        """The channel was opened again: what it lost before counts no more."""
        if self.ended.done():
            self.ended = asyncio.get_running_loop().create_future()

    # What the channel hands in.

    def receive(self, message: bytes) -> None:
        try:
            incoming = decode_incoming(message)
        except UNREADABLE:
            self._receive_odd(message)
            return
        if not is_utf8(message):  # our own client could not read it, and every other call with it
            self.receive(message.decode("utf-8", "replace").encode())
            return
        if incoming.method is UNSET:
            self._answered(incoming)
        elif incoming.id is UNSET:
            self._notified(incoming.method, incoming.params)
        else:
            self._questions.take(incoming.id, incoming.method, incoming.params)

    def refused(self, request_id: int, body: bytes) -> bool:
        try:
            error = decode_any(body).get("error")
        except (*UNREADABLE, AttributeError):
            return False
        if not isinstance(error, dict) or "code" not in error:
            return False
        self.fail(request_id, read_error(error))
        return True

    def fail(self, request_id: int, error: DariError) -> None:
        call = self._calls.waiting(request_id)
        if call is not None:
            call.future.set_exception(error)

    def is_waiting(self, request_id: int) -> bool:
        return self._calls.waiting(request_id) is not None

    def hold(self) -> None:
        if self._calls.hold():
            self._on_hold(True)

    def release(self) -> None:
        if self._calls.release():
            self._on_hold(False)

    def lost(self, error: DariError) -> None:
        if not self.ended.done():
            self.ended.set_result(error)
            self._calls.fail_all(error)

    def session_lost(self) -> None:
        self._on_session_lost()

    def resumed(self) -> None:
        self._feed.missed()

    # What arrives.

    def _answered(self, incoming: Incoming) -> None:
        call = self._calls.waiting(incoming.id)
        if call is None:
            return
        if incoming.result is not UNSET:
            call.future.set_result(incoming.result)
        else:
            call.future.set_exception(read_error(None if incoming.error is UNSET else incoming.error))

    def _notified(self, method: str, raw: Raw | UnsetType) -> None:
        params = Raw(b"{}") if raw is UNSET else raw
        try:
            if method == "notifications/progress":
                self._progressed(params)
            elif method == "notifications/cancelled":
                self._cancelled(params)
            else:
                listener = self._calls.find(subscription_of(params))
                if listener is not None and listener.on_notice is not None:
                    listener.on_notice(method, params)
                else:
                    self._feed.publish(read_event(method, params))
        except Exception:
            _log.exception("transport=client event=notification %s", method)

    def _progressed(self, params: Raw) -> None:
        report = read(params, Progress, "progress notification")
        call = self._calls.find(report.progress_token)
        if call is not None and call.on_progress is not None:
            call.on_progress(report)

    def _cancelled(self, params: Raw) -> None:
        members = decode_any(params)
        request_id = members.get("requestId") if isinstance(members, dict) else None
        if not self.era.is_stateless:
            # It takes back a question of its own, which may be answered by now; our ids have nothing to do with that.
            self._questions.cancel(request_id)
            return
        call = self._calls.waiting(request_id)
        if call is not None:
            call.future.set_exception(Unavailable(f"the server cancelled {call.method}", "call again"))

    def _receive_odd(self, message: bytes) -> None:
        """A batch, an answer that breaks the schema, or no message at all."""
        try:
            if message.lstrip()[:1] == b"[":
                for part in map(bytes, decode_batch(message)):
                    if part[:1] == b"{":
                        self.receive(part)
                return
            members = decode_any(message)
        except UNREADABLE:
            members = decode_sloppy(message)
            if isinstance(members, dict):
                self.receive(encode(members))
                return
        request_id = members.get("id") if isinstance(members, dict) else find_request_id(message)
        call = self._calls.waiting(request_id)
        if call is None:
            text = message[:500].decode("utf-8", "replace")
            self.noise.append("".join(c for c in text if c.isprintable()).strip())
            _log.debug("transport=client event=noise %r", message[:200])
        else:
            error = members.get("error") if isinstance(members, dict) else None
            what = "breaks JSON-RPC" if isinstance(members, dict) else "is not JSON"
            broken = Failed(f"the server's answer to {call.method} {what}", "report it to its author")
            call.future.set_exception(broken if error is None else read_error(error))

    # The end of a wait.

    async def _drain(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(None if timeout_s == FOREVER else timeout_s):
                await self._channel.drain()
        except TimeoutError:
            raise TimedOut("the server does not read what it is sent", "restart it") from None

    def _expire(self, request_id: int, call: PendingCall) -> None:
        message = f"{call.method} took longer than {call.timeout_s:g} s"
        odd = "; its stdout has lines that are not MCP messages" if self.noise else ""
        call.future.set_exception(TimedOut(message, f"allow more time, or ask for less at once{odd}"))
        self._give_up(request_id, "the time limit passed")

    def _give_up(self, request_id: int, reason: str) -> None:
        call = self._calls.remove(request_id)
        if call is None or self.ended.done():
            return
        notice = b""
        if call.method not in ("initialize", "server/discover"):  # MCP forbids to cancel these
            notice = notification_message("notifications/cancelled", {"requestId": request_id, "reason": reason})
        self._channel.cancel(request_id, notice)
