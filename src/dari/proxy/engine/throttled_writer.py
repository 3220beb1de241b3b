"""Bytes at the speed a throttle allows, in small slices so that a slow line is slow and not silent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from dari.proxy.engine.flow_control import PACED, FlowControlledProtocol
from dari.proxy.engine.hooks import Direction, ThrottleHook

Done = Callable[[], None]


class ThrottledWriter:
    """Queues what its source sent and holds the source meanwhile, so the queue is one read long at most."""

    __slots__ = ("_direction", "_queue", "_source", "_timer", "_write", "throttle")

    def __init__(
        self, throttle: ThrottleHook, direction: Direction, source: Callable[[], FlowControlledProtocol | None]
    ) -> None:
        self.throttle = throttle
        self._direction = direction
        self._source = source
        self._queue: deque[tuple[bytes, Done | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._write: Callable[[bytes], None] | None = None

    def attach(self, write: Callable[[bytes], None]) -> None:
        self._write = write

    def write(self, data: bytes, done: Done | None = None) -> None:
        size = self.throttle.piece_bytes(self._direction)
        for start in range(0, len(data), size):
            self._queue.append((data[start : start + size], None))
        if done is not None:
            self._queue.append((b"", done))
        self._run()

    def then(self, done: Done) -> None:
        """Call it once everything that waits is written."""
        self.write(b"", done)

    @property
    def is_busy(self) -> bool:
        """Whether something waits that was not written yet."""
        return bool(self._queue)

    def close(self) -> None:
        """Forget what waits; it may be written to again, after `attach` to another connection."""
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._let_go()

    def _run(self) -> None:
        while self._queue and self._timer is None:
            data, _ = self._queue[0]
            wait_s = self.throttle.take(self._direction, len(data)) if data else 0.0
            if wait_s > 0:
                if (source := self._source()) is not None:
                    source.hold(PACED)
                self._timer = asyncio.get_running_loop().call_later(wait_s, self._waited)
                return
            self._emit()

    def _waited(self) -> None:
        self._timer = None
        if self._queue:
            self._emit()
            self._run()
        if self._timer is None:
            self._let_go()

    def _emit(self) -> None:
        data, done = self._queue.popleft()
        if data and self._write is not None:
            self._write(data)
        if done is not None:
            done()

    def _let_go(self) -> None:
        if (source := self._source()) is not None:
            source.free(PACED)
