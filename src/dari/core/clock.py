"""Time as the limits see it. An asyncio event loop is such a clock; tests bring one whose time they set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> object: ...


class Clock(Protocol):
    def time(self) -> float:
        """Seconds that never go backwards."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> Timer: ...


class LoopClock:
    """The clock of whichever event loop runs at the moment of asking."""

    __slots__ = ()

    def time(self) -> float:
        return asyncio.get_running_loop().time()

    def call_at(self, when: float, callback: Callable[[], object], /) -> Timer:
        return asyncio.get_running_loop().call_at(when, callback)
