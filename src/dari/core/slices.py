"""Long work in slices: after some milliseconds the event loop gets a turn, so that nobody else waits for all of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from time import perf_counter
from typing import Generic, TypeVar

T = TypeVar("T")

SLICE_S = 0.01


async def sliced(items: Iterable[T], slice_s: float = SLICE_S) -> AsyncIterator[T]:
    """The items, one by one; others run in between."""
    until = perf_counter() + slice_s
    for item in items:
        yield item
        if perf_counter() >= until:
            await asyncio.sleep(0)
            until = perf_counter() + slice_s


class Sliced(Generic[T]):
    """What a connection brought, handled in order and in slices. Nothing more is read while something waits."""

    def __init__(
        self,
        handle: Callable[[T], object],
        pause: Callable[[], object],
        resume: Callable[[], object],
        slice_s: float = SLICE_S,
    ) -> None:
        self._handle = handle
        self._pause = pause
        self._resume = resume
        self._slice_s = slice_s
        self._waiting: deque[T] = deque()
        self._planned: asyncio.Handle | None = None

    def __bool__(self) -> bool:
        """Whether something waits."""
        return bool(self._waiting)

    def take(self, items: Iterable[T]) -> None:
        """Handle them, now as far as a slice goes and the rest in the next turns."""
        self._waiting.extend(items)
        if self._planned is None:
            self._run(is_first=True)

    def finish(self) -> None:
        """Handle all that waits at once: the connection is over, and what it brought is all there will be."""
        self.clear(keep=True)
        while self._waiting:
            self._handle(self._waiting.popleft())

    def clear(self, *, keep: bool = False) -> None:
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None
        if not keep:
            self._waiting.clear()

    def _run(self, *, is_first: bool = False) -> None:
        self._planned = None
        until = perf_counter() + self._slice_s
        waiting = self._waiting
        while waiting:
            self._handle(waiting.popleft())
            if waiting and perf_counter() >= until:
                if is_first:
                    self._pause()
                self._planned = asyncio.get_running_loop().call_soon(self._run)
                return
        if not is_first:
            self._resume()
