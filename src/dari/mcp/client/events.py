"""What a server says without being asked: lists that changed, resources that were updated, log messages."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from dari.core.events import ListChanged, ListKind, ResourceUpdated
from dari.mcp.client.decode import read
from dari.rpc.codec import UNREADABLE
from dari.struct_types import ready

MAX_EVENTS = 1000
_LISTS: dict[str, ListKind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
_log = logging.getLogger("dari.mcp.client")


class LogMessage(Struct, frozen=True):
    """`notifications/message`."""

    level: str
    data: Any = None
    logger: str = ""


class Notification(Struct, frozen=True):
    """Any other notification, unread."""

    method: str
    params: Raw


Event = ListChanged | ResourceUpdated | LogMessage | Notification
OnEvent = Callable[[Event], object]


class _Stamp(Struct):
    subscription: int | str | None = field(default=None, name="io.modelcontextprotocol/subscriptionId")


class _Stamped(Struct):
    meta: _Stamp | None = field(default=None, name="_meta")


_decode_stamped = msgspec.json.Decoder(ready(_Stamped)).decode


def subscription_of(params: Raw) -> int | str | None:
    """The `subscriptions/listen` request that a notification belongs to."""
    try:
        meta = _decode_stamped(params).meta
    except UNREADABLE:
        return None
    return None if meta is None else meta.subscription


def read_event(method: str, params: Raw) -> Event:
    kind = _LISTS.get(method)
    if kind is not None:
        return ListChanged(kind)
    if method == "notifications/resources/updated":
        return read(params, ResourceUpdated, "resource update")
    if method == "notifications/message":
        return read(params, LogMessage, "log message")
    return Notification(method, params.copy())


class Feed:
    """Hands every event to every listener. A listener that raises is logged, and heard again."""

    def __init__(self) -> None:
        self._listeners: list[tuple[OnEvent, Callable[[], object]]] = []

    def add(self, listener: OnEvent, on_missed: Callable[[], object]) -> Callable[[], None]:
        """`on_missed` is called after a gap in which events may have passed. Call what is returned to stop."""
        entry = (listener, on_missed)
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry) if entry in self._listeners else None

    def publish(self, event: Event) -> None:
        for listener, _ in list(self._listeners):
            try:
                listener(event)
            except Exception:
                _log.exception("transport=client event=listener %r", event)

    def missed(self) -> None:
        for _, on_missed in list(self._listeners):
            on_missed()


class Backlog:
    """Events that were not taken yet: at most 1000, the oldest go first; a change that waits is not queued twice."""

    def __init__(self, most: int = MAX_EVENTS) -> None:
        self._events: deque[Event] = deque()
        self._pending: set[ListChanged | ResourceUpdated] = set()
        self._most = most
        self._wake = asyncio.Event()
        self._end: Exception | None = None
        self.dropped = 0

    def put(self, event: Event) -> None:
        if isinstance(event, ListChanged | ResourceUpdated):
            if event in self._pending:
                return
            self._pending.add(event)
        self._events.append(event)
        if len(self._events) > self._most:
            self._forget(self._events.popleft())
            self.dropped += 1
        self._wake.set()

    def end(self, reason: Exception) -> None:
        """What is here is still handed out; then the reason is raised."""
        if self._end is None:
            self._end = reason
            self._wake.set()

    async def take(self) -> Event:
        while not self._events:
            if self._end is not None:
                raise self._end
            self._wake.clear()
            await self._wake.wait()
        event = self._events.popleft()
        self._forget(event)
        return event

    def _forget(self, event: Event) -> None:
        if isinstance(event, ListChanged | ResourceUpdated):
            self._pending.discard(event)
