"""A task beside an attack: how often the event loop came round, and how much work was done between two rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Heartbeat:
    """`beats` counts turns of the loop. `counted` functions add to the work of the turn; `most` is the busiest one."""

    def __init__(self) -> None:
        self.beats = 0
        self.most = 0
        self.total = 0
        self._work = 0
        self._task: asyncio.Task[None] | None = None

    def counted(self, function: Callable[..., Any], amount: Callable[..., int] = lambda *_, **__: 1) -> Any:
        def counting(*arguments: Any, **named: Any) -> Any:
            done = amount(*arguments, **named)
            self._work += done
            self.total += done
            self.most = max(self.most, self._work)
            return function(*arguments, **named)

        return counting

    async def __aenter__(self) -> Heartbeat:
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            self.beats += 1
            self._work = 0
            await asyncio.sleep(0)
