"""When a daemon ends: on request, by a signal, when a part of it fails, or when it was idle for long enough."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

from dari.errors import DariError

_LOOKS = 8
"""How often a daemon looks for work in its idle time: it ends an eighth of it late at most."""


class Lifetime:
    """`async with` watches for the ends; `stopped()` returns at the first of them."""

    def __init__(self, idle_s: float = 0.0, is_busy: Callable[[], bool] = lambda: False) -> None:
        """With `idle_s`, it ends once `is_busy` was false for that long; 0 means never."""
        self.is_busy = is_busy
        self.failure: DariError | None = None
        self.is_kept = False
        """Whether it stays although it is idle."""
        self._idle_s = idle_s
        self._stopped = asyncio.Event()
        self._watching: list[asyncio.Task[None]] = []

    def stop(self, failure: DariError | None = None) -> None:
        """End the daemon; `run_daemon` raises the failure when all is closed."""
        self.failure = self.failure or failure
        self._stopped.set()

    async def stopped(self) -> None:
        await self._stopped.wait()

    def ends_with(self, wait: Callable[[], Awaitable[object]]) -> None:
        """End the daemon when `wait()` returns."""

        async def watch() -> None:
            await wait()
            self.stop()

        self._watching.append(asyncio.get_running_loop().create_task(watch()))

    async def __aenter__(self) -> Lifetime:
        if self._idle_s:
            self.ends_with(self._idle)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        self._watching.clear()

    async def _idle(self) -> None:
        loop = asyncio.get_running_loop()
        busy_at_s = loop.time()
        while True:
            await asyncio.sleep(self._idle_s / _LOOKS)
            if self.is_busy() or self.is_kept:
                busy_at_s = loop.time()
            elif loop.time() - busy_at_s >= self._idle_s:
                return


async def run_daemon(daemon: AbstractAsyncContextManager[object], lifetime: Lifetime) -> None:
    """Enter the daemon and leave it when its lifetime ends, or at SIGTERM or SIGINT."""
    with _stop_at_signals(lifetime):
        async with daemon, lifetime:
            await lifetime.stopped()
    if lifetime.failure is not None:
        raise lifetime.failure


@contextmanager
def _stop_at_signals(lifetime: Lifetime) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, lifetime.stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
