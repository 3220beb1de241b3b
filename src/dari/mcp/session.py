"""A client of the handshake era: what `initialize` agreed, what runs, what is subscribed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from dari.core.context import Level
from dari.core.scopes import Grant
from dari.rpc.codec import Message, RequestId, notification_message, request_message


class Outlet(Protocol):
    """Where messages to one client go. Writing never blocks; `drain` waits until the client has caught up."""

    def emit(self, message: bytes) -> None: ...

    async def drain(self) -> None: ...


_numbers = count(1)
_PROCESS = os.urandom(4).hex()
"""Keys stand in the audit log, beside those of other processes and of earlier runs."""


class RunningRequest(Protocol):
    """A call in flight."""

    def cancel(self, reason: str) -> None: ...


class Session:
    """State between `initialize` and the end of the connection (or of the HTTP session)."""

    __slots__ = (
        "capabilities",
        "client_info",
        "grant",
        "has_asked_for_logs",
        "id",
        "key",
        "last_activity_s",
        "log_level",
        "on_close",
        "peer",
        "roots",
        "roots_changes",
        "running",
        "standing",
        "streams",
        "subscriptions",
        "version",
        "_next_id",
        "_waiting",
    )

    def __init__(self, grant: Grant, session_id: str = "") -> None:
        self.id = session_id
        self.key = f"{_PROCESS}-{next(_numbers)}"
        self.grant = grant
        self.version = ""
        self.client_info: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {}
        self.log_level: Level = "info"
        self.has_asked_for_logs = False
        self.subscriptions: set[str] = set()
        self.running: dict[RequestId, RunningRequest] = {}
        self.standing: Outlet | None = None
        self.streams: Any = None
        self.last_activity_s = 0.0
        self.peer = ""
        """Whom it is counted for."""
        self.roots: list[dict[str, Any]] | None = None
        """The client's folders as it last listed them; None: to be asked for."""
        self.roots_changes = 0
        self.on_close: list[Callable[[], None]] = []
        self._next_id = 0
        self._waiting: dict[RequestId, asyncio.Future[Message]] = {}

    def forget_roots(self) -> None:
        """The client says that its folders changed."""
        self.roots = None
        self.roots_changes += 1

    def skip_request_ids(self, count: int) -> None:
        """Number our requests from `count` on: the client knows those before from a session that this one replaces."""
        self._next_id += count

    async def request(self, outlet: Outlet, method: str, params: Any, timeout_s: float) -> Message:
        """Ask the client something and wait for its response message."""
        self._next_id += 1
        request_id = f"s{self._next_id}"
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            outlet.emit(request_message(request_id, method, params))
            async with asyncio.timeout(timeout_s):
                return await future
        except (asyncio.CancelledError, TimeoutError):
            outlet.emit(notification_message("notifications/cancelled", {"requestId": request_id}))
            raise
        finally:
            self._waiting.pop(request_id, None)

    def answer(self, message: Message) -> None:
        """Hand a response to the request that waits for it; a late or unknown one is dropped."""
        if isinstance(message.id, (int, str)):
            future = self._waiting.get(message.id)
            if future is not None and not future.done():
                future.set_result(message)

    def fail_questions(self, error: Exception) -> None:
        """The client is gone: end every wait for its answers."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    def close(self, reason: str) -> None:
        """End everything that belongs to this session."""
        for call in list(self.running.values()):
            call.cancel(reason)
        self.running.clear()
        for undo in self.on_close:
            undo()
        self.on_close.clear()
        self.standing = None
