"""How long a first list waits for servers that were never seen before."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

WAIT_S = 2.0
EXTEND_S = 1.0
MAX_WAIT_S = 6.0


class StartupWait:
    """Two seconds from the first question, or as long as one server after another answers, and six at most."""

    def __init__(self, limit_s: float = WAIT_S) -> None:
        self.limit_s = limit_s
        self._unseen: set[str] = set()
        self._is_over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._latest_s = 0.0

    @property
    def is_over(self) -> bool:
        """From now on nobody waits."""
        return self._is_over.is_set()

    def expect(self, id: str) -> None:
        self._unseen.add(id)

    def arrived(self, id: str) -> None:
        """It has answered, failed, or is not wanted any more."""
        self._unseen.discard(id)
        if self._timer is not None and not self.is_over:
            # Many start at the same time and are slow together: the next one is given a moment more.
            loop = asyncio.get_running_loop()
            until_s = min(max(self._timer.when(), loop.time() + EXTEND_S), self._latest_s)
            self._timer.cancel()
            self._timer = loop.call_at(until_s, self._is_over.set)

    def check(self) -> None:
        """Over, when everybody is here."""
        if not self._unseen:
            self._is_over.set()

    def wait(self) -> Coroutine[Any, Any, None] | None:
        """What a list has to wait for; None: nothing."""
        if self.is_over:
            return None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.limit_s, self._is_over.set)
            self._latest_s = loop.time() + max(MAX_WAIT_S, self.limit_s)
        return self._wait()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_over.set()

    async def _wait(self) -> None:
        await self._is_over.wait()
