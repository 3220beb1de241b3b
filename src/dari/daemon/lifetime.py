"""When a daemon ends: on request, by a signal, when a part of it fails, or when it was idle for long enough."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

from dari.errors import DariError

_LOOKS = 8
"""How often a daemon looks for work in its idle time; while it works, at least every `MAX_LOOK_S`, so that it ends
that much late at most."""
MAX_LOOK_S = 5.0


class Lifetime:
    """`async with` watches for the ends; `stopped()` returns at the first of them."""

    def __init__(
        self, idle_s: float = 0.0, is_busy: Callable[[], bool] = lambda: False, *, unused_s: float | None = None
    ) -> None:
        """With `idle_s`, it ends once `is_busy` was false and nobody called `touch` for that long; 0 means never.

        `unused_s` is the time for one that nobody has used yet: who started it was killed before its first call.
        """
        self.is_busy = is_busy
        self.failure: DariError | None = None
        self.is_kept = False
        """Whether it stays although it is idle."""
        self._idle_s = idle_s
        self._unused_s = idle_s if unused_s is None else min(idle_s, unused_s)
        self._used_at_s: float | None = None
        self._stopped = asyncio.Event()
        self._watching: list[asyncio.Task[None]] = []

    def stop(self, failure: DariError | None = None) -> None:
        """End the daemon; `run_daemon` raises the failure when all is closed."""
        self.failure = self.failure or failure
        self._stopped.set()

    def touch(self) -> None:
        """Somebody uses the daemon: a call that is over before `is_busy` is asked counts as well."""
        self._used_at_s = asyncio.get_running_loop().time()

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
        started_s = loop.time()
        look_s = min(self._idle_s / _LOOKS, MAX_LOOK_S)
        while True:
            if self.is_busy() or self.is_kept:
                await asyncio.sleep(look_s)
                self.touch()  # it was busy until just now, for all we know
                continue
            ends_s = started_s + self._unused_s if self._used_at_s is None else self._used_at_s + self._idle_s
            if (left_s := ends_s - loop.time()) <= 0:
                return
            await asyncio.sleep(min(left_s, self._idle_s / _LOOKS))


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
