"""Work that is on its way without a task of its own: it waits for one future and for nothing else.

A task costs a turn of the event loop and, with the coroutines inside it, a tenth of a call that is only passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any


class PendingResult:
    """What a tool may return in place of a coroutine. Cancelling `future` ends it.

    `finish` is called once, when `future` is done, whatever became of it: it returns the value, raises, or returns
    another one of these where there is more to wait for. A caller that awaits this object need not know any of that.
    """

    __slots__ = ("finish", "future")

    def __init__(self, future: asyncio.Future[Any], finish: Callable[[asyncio.Future[Any]], Any]) -> None:
        self.future = future
        self.finish = finish

    def __await__(self) -> Generator[Any, None, Any]:
        return self._waited().__await__()

    async def _waited(self) -> Any:
        cancelled: asyncio.CancelledError | None = None
        work = self
        while True:
            try:
                await work.future
            except asyncio.CancelledError as error:
                cancelled = error
            except Exception:
                pass  # `finish` reports it
            value = work.finish(work.future)
            if not isinstance(value, PendingResult):
                break
            work = value
            if cancelled is not None:
                work.future.cancel()
        if cancelled is not None:
            raise cancelled
        return value
