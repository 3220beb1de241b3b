"""When a daemon ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dari.daemon.lifetime import MAX_LOOK_S, Lifetime

IDLE_S = 800.0


class Timeline(asyncio.SelectorEventLoop):
    """Time that goes on only while everything waits, from one timer to the next."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0

    def time(self) -> float:
        return self._now_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now_s = max(self._now_s, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def end_of(lifetime: Callable[[], Lifetime], **used_at_s: float) -> float:
    """When the daemon ends; it is touched at these times."""

    async def run() -> float:
        loop = asyncio.get_running_loop()
        async with lifetime() as running:
            for at_s in used_at_s.values():
                loop.call_at(at_s, running.touch)
            await running.stopped()
        return loop.time()

    with asyncio.Runner(loop_factory=Timeline) as runner:
        return runner.run(run())


def busy_until(end_s: float) -> Callable[[], bool]:
    return lambda: asyncio.get_running_loop().time() < end_s


def test_a_daemon_without_work_ends_after_its_idle_time_to_the_second() -> None:
    assert end_of(lambda: Lifetime(IDLE_S)) == IDLE_S


def test_a_daemon_ends_its_idle_time_after_its_work_and_a_moment_at_most() -> None:
    end_s = end_of(lambda: Lifetime(IDLE_S, busy_until(301.0)))
    assert 301.0 + IDLE_S <= end_s <= 301.0 + IDLE_S + MAX_LOOK_S


def test_a_call_that_is_over_before_anybody_looks_counts_as_use() -> None:
    assert end_of(lambda: Lifetime(IDLE_S), first=210.0, second=790.0) == 790.0 + IDLE_S


def test_a_daemon_that_nobody_has_used_ends_sooner() -> None:
    """Its starter was killed before its first call."""
    assert end_of(lambda: Lifetime(IDLE_S, unused_s=60.0)) == 60.0
    assert end_of(lambda: Lifetime(IDLE_S, unused_s=60.0), first=59.0) == 59.0 + IDLE_S
