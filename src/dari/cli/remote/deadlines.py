"""`--timeout`: how long an exchange with a server may take as a whole, its start included, a person's answers not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from dari.errors import TimedOut


class Deadline:
    """Without a limit the profile's own times count alone. The clock stands still while `paused`."""

    def __init__(self, limit_ms: int | None = None) -> None:
        self._limit_ms = limit_ms
        self._timeout: asyncio.Timeout | None = None
        self._pauses = 0
        self._left_s = 0.0

    @property
    def limit_s(self) -> float | None:
        return None if self._limit_ms is None else self._limit_ms / 1000

    @asynccontextmanager
    async def over(self, what: str) -> AsyncIterator[None]:
        """TimedOut, which is exit code 2, when the block takes longer. Each block has the whole time."""
        if self._limit_ms is None:
            yield
            return
        try:
            async with asyncio.timeout(self.limit_s) as self._timeout:
                yield
        except TimeoutError:
            raise TimedOut(f"{what} was not done in {self._limit_ms} ms", "allow more time: --timeout MS") from None
        finally:
            self._timeout = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While a person is asked."""
        timeout = self._timeout
        if timeout is None:
            yield
            return
        loop = asyncio.get_running_loop()
        if self._pauses == 0:
            self._left_s = max(0.0, (timeout.when() or loop.time()) - loop.time())
            timeout.reschedule(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and self._timeout is timeout and not timeout.expired():
                timeout.reschedule(loop.time() + self._left_s)
