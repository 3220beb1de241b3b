"""Who waits for which answer, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from dari.core.context import Progress
from dari.errors import DariError
from dari.mcp.client.errors import copy_error

OnProgress = Callable[[Progress], object]
OnNotice = Callable[[str, Raw], None]

FOREVER = float("inf")


class PendingCall:
    """A request that waits. `on_notice` takes what the server says about it before the answer."""

    __slots__ = ("deadline_s", "future", "method", "on_notice", "on_progress", "timeout_s")

    def __init__(
        self,
        future: asyncio.Future[Raw],
        method: str,
        timeout_s: float,
        now_s: float,
        on_progress: OnProgress | None,
        on_notice: OnNotice | None,
    ) -> None:
        self.future = future
        self.method = method
        self.timeout_s = timeout_s
        self.deadline_s = now_s + timeout_s
        self.on_progress = on_progress
        self.on_notice = on_notice


class PendingCalls:
    """By id. One timer serves them all, at the first deadline: most calls end before it and never pay for one."""

    def __init__(self, on_late: Callable[[int, PendingCall], None]) -> None:
        self._on_late = on_late
        self._loop = asyncio.get_running_loop()
        self._by_id: dict[int, PendingCall] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = FOREVER
        self._holds = 0

    @property
    def is_held(self) -> bool:
        """Whether the clocks stand still."""
        return self._holds > 0

    def add(
        self,
        request_id: int,
        method: str,
        timeout_s: float,
        on_progress: OnProgress | None,
        on_notice: OnNotice | None,
    ) -> asyncio.Future[Raw]:
        future: asyncio.Future[Raw] = self._loop.create_future()
        call = PendingCall(future, method, timeout_s, self._loop.time(), on_progress, on_notice)
        self._by_id[request_id] = call
        if call.deadline_s < self._alarm_s:
            self._set_alarm(call.deadline_s)
        return future

    def remove(self, request_id: int) -> PendingCall | None:
        return self._by_id.pop(request_id, None)

    def find(self, request_id: Any) -> PendingCall | None:
        """Our ids are integers; a few servers send them back as strings or floats."""
        if isinstance(request_id, int):
            return self._by_id.get(request_id)
        if isinstance(request_id, float) and request_id.is_integer():
            return self._by_id.get(int(request_id))
        if isinstance(request_id, str) and request_id.isascii() and request_id.isdigit() and len(request_id) < 16:
            return self._by_id.get(int(request_id))
        return None

    def waiting(self, request_id: Any) -> PendingCall | None:
        """Only if it is still unanswered."""
        call = self.find(request_id)
        return None if call is None or call.future.done() else call

    def fail_all(self, error: DariError) -> None:
        for call in self._by_id.values():
            if not call.future.done():
                call.future.set_exception(copy_error(error))
        self._set_alarm(FOREVER)

    def hold(self) -> bool:
        """Stop the clocks; True when they ran."""
        self._holds += 1
        return self._holds == 1

    def release(self) -> bool:
        """True when they run again: every limit starts anew."""
        self._holds -= 1
        if self._holds:
            return False
        now_s = self._loop.time()
        for call in self._by_id.values():
            call.deadline_s = now_s + call.timeout_s
        return True

    def _set_alarm(self, when_s: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_s = when_s
        self._alarm = None if when_s == FOREVER else self._loop.call_at(when_s, self._ring)

    def _ring(self) -> None:
        now_s = self._loop.time()
        late = [(request_id, call) for request_id, call in self._by_id.items() if call.deadline_s <= now_s]
        for request_id, call in late:
            if self.is_held:
                call.deadline_s = now_s + call.timeout_s
            elif not call.future.done():
                self._on_late(request_id, call)
        waiting = (call.deadline_s for call in self._by_id.values() if not call.future.done())
        self._set_alarm(min(waiting, default=FOREVER))
