"""The page as an MCP client: JSON-RPC messages on a WebSocket, and the topics it subscribes to.

→ topics/subscribe    {"topic": "pane:%3", "since": ""}      ← {} and then notifications topics/event
→ topics/unsubscribe  {"topic": "pane:%3"}
← topics/event        {"topic": …, "event": …}
← topics/ended        {"topic": …, "error": {"name", "message", "hint"}}
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct

from dari.console.live import TopicOptions, Topics
from dari.core.scopes import Grant
from dari.errors import DariError, Unavailable
from dari.log import format_event
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.server import Server
from dari.rpc.codec import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    error_message,
    notification_message,
    result_message,
)
from dari.struct_types import ready

MAX_TOPICS = 64
MAX_UNSENT_BYTES = 64 * 1024 * 1024
Send = Callable[[str], Awaitable[None]]
_log = logging.getLogger("dari.console")
_SUBSCRIBE, _UNSUBSCRIBE = "topics/subscribe", "topics/unsubscribe"


class _TopicParams(Struct, frozen=True):
    topic: str
    since: str = ""
    filter: str = ""
    extra: dict[str, Any] = {}


class _TopicRequest(Struct, frozen=True):
    method: str = ""
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _TopicEvent(Struct, frozen=True):
    topic: str
    event: Any


class _TopicError(Struct, frozen=True):
    name: str
    message: str
    hint: str


class _TopicEnded(Struct, frozen=True):
    topic: str
    error: _TopicError | None


_decode_request = msgspec.json.Decoder(ready(_TopicRequest)).decode
_decode_params = msgspec.json.Decoder(ready(_TopicParams)).decode


class ConsoleChannel(ReplyChannel):
    """One open page."""

    transport = "console"

    def __init__(self, server: Server, grant: Grant, topics: Topics, send: Send) -> None:
        self.grant = grant
        self._server = server
        self._topics = topics
        self._send = send
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._has_unsent = asyncio.Event()
        self._is_sent = asyncio.Event()
        self._is_sent.set()
        self._following: dict[str, asyncio.Task[None]] = {}
        self.is_closed = False
        self.overrun = asyncio.Event()
        """Set when too much is due to a page that does not read: nothing is kept for it any more, it has to end."""
        session = server.open_session(self)
        session.standing = self
        self._session = self.session = session

    def receive(self, data: bytes) -> None:
        """Take one message of the page."""
        if b'"topics/' in data[:200] and self._receive_topic(data):
            return
        try:
            self._server.receive(data, self)
        except Exception as error:
            _log.exception(format_event(self.transport, "fatal"))
            self.reply(error_message(None, INTERNAL_ERROR, f"Internal error: {type(error).__name__}: {error}"))

    def reply(self, message: bytes, code: int = 0) -> None:
        self._put(message)

    def emit(self, message: bytes) -> None:
        self._put(message)

    async def drain(self) -> None:
        await self._is_sent.wait()

    async def write(self) -> None:
        """Send what is due, until the connection ends."""
        while not self.is_closed:
            await self._has_unsent.wait()
            while self._unsent:
                message = self._unsent.popleft()
                self._unsent_bytes -= len(message)
                await self._send(message.decode())
            self._has_unsent.clear()
            self._is_sent.set()

    async def close(self) -> None:
        """End what the page follows and what it still runs."""
        if self.is_closed:
            return
        self.is_closed = True
        self._unsent.clear()
        self._is_sent.set()
        self._has_unsent.set()
        following = list(self._following.values())
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        self._server.close_session(self._session, "the page was closed")

    def _put(self, message: bytes) -> None:
        if self.is_closed or self.overrun.is_set():
            return
        self._unsent.append(message)
        self._unsent_bytes += len(message)
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self.overrun.set()
            self._unsent.clear()
        self._is_sent.clear()
        self._has_unsent.set()

    def _receive_topic(self, data: bytes) -> bool:
        try:
            request = _decode_request(data)
        except msgspec.MsgspecError:
            return False
        if request.id is None or request.method not in (_SUBSCRIBE, _UNSUBSCRIBE):
            return False
        try:
            params = _decode_params(request.params)
            if request.method == _SUBSCRIBE:
                self._follow(params)
            elif (task := self._following.pop(params.topic, None)) is not None:
                task.cancel()
        except (msgspec.MsgspecError, DariError) as error:
            self.reply(error_message(request.id, INVALID_PARAMS, f"Invalid params: {error}"))
        else:
            self.reply(result_message(request.id, b"{}"))
        return True

    def _follow(self, params: _TopicParams) -> None:
        if params.topic not in self._following and len(self._following) >= MAX_TOPICS:
            raise Unavailable(f"the page follows {MAX_TOPICS} topics already", "unsubscribe from one")
        events = self._topics.follow(params.topic, TopicOptions(params.since, params.filter, params.extra))
        if (old := self._following.pop(params.topic, None)) is not None:
            old.cancel()
        task = asyncio.get_running_loop().create_task(self._pass_on(params.topic, events))
        self._following[params.topic] = task

    async def _pass_on(self, topic: str, events: Any) -> None:
        error: _TopicError | None = None
        try:
            async for event in events:
                self.emit(notification_message("topics/event", _TopicEvent(topic, event)))
                await self.drain()
                if self.is_closed:
                    return
        except asyncio.CancelledError:
            raise
        except DariError as failure:
            error = _TopicError(failure.name, failure.message, failure.hint)
        except Exception as failure:
            _log.exception(format_event(self.transport, "topic_failed", f"topic={topic[:60]}"))
            error = _TopicError("internal", f"{type(failure).__name__}: {failure}", "the hub's log says more")
        finally:
            await events.aclose()
        if self._following.get(topic) is asyncio.current_task():
            del self._following[topic]
        self.emit(notification_message("topics/ended", _TopicEnded(topic, error)))
