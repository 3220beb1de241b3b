"""Long work in slices: after some milliseconds the event loop gets a turn, so that nobody else waits for all of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
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


def pieces(data: bytes, size_bytes: int) -> Iterator[bytes]:
    """The bytes in order, a few at a time: how long a parser takes for one piece has a bound."""
    return (data[at : at + size_bytes] for at in range(0, len(data), size_bytes))


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
        self._then: Callable[[], object] | None = None
        self._emptied: asyncio.Event | None = None

    def __bool__(self) -> bool:
        """Whether something waits."""
        return bool(self._waiting)

    def take(self, items: Iterable[T]) -> None:
        """Handle them, now as far as a slice goes and the rest in the next turns."""
        self._waiting.extend(items)
        if self._planned is None:
            self._run(is_first=True)

    def then(self, ended: Callable[[], object]) -> None:
        """Call it once nothing waits any more: the end of a connection comes after what it brought."""
        self._then = ended

    def rest(self) -> list[T]:
        """What waits, taken out: somebody else will handle it."""
        rest = list(self._waiting)
        self.clear()
        return rest

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()
        self._then = None
        if self._emptied is not None:
            self._emptied.set()
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None

    async def handled(self) -> None:
        """Wait until nothing waits."""
        if self._waiting:
            self._emptied = asyncio.Event()
            await self._emptied.wait()

    def _run(self, *, is_first: bool = False) -> None:
        self._planned = None
        until = perf_counter() + self._slice_s
        waiting = self._waiting
        try:
            while waiting:
                self._handle(waiting.popleft())
                if waiting and perf_counter() >= until:
                    break
        finally:
            # Also after an error in one: it must not keep those behind it for ever.
            if waiting:
                if is_first:
                    self._pause()
                self._planned = asyncio.get_running_loop().call_soon(self._run)
        if waiting:
            return
        if not is_first:
            self._resume()
        if self._emptied is not None:
            self._emptied.set()
        if self._then is not None:
            ended, self._then = self._then, None
            ended()
