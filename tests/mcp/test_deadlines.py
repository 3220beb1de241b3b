"""One timer per time limit watches every call with that limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from dari.mcp.inflight import InflightCall, InflightCalls


class Clock:
    """A loop whose time passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, callback: Callable[..., None], *args: Any) -> None:
        self.timers.append((self.now_s + delay_s, callback, args))

    def go_to(self, until_s: float) -> None:
        while due := [timer for timer in self.timers if timer[0] <= until_s]:
            timer = min(due, key=lambda timer: timer[0])
            self.timers.remove(timer)
            self.now_s = timer[0]
            timer[1](*timer[2])
        self.now_s = until_s


class Watched:
    """Stands in for a call: notes when it was told that its time is over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.expired_s: list[float] = []

    def expire(self) -> None:
        self.expired_s.append(round(self._clock.now_s, 2))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    return clock


def start(running: InflightCalls, clock: Clock, timeout_s: float) -> tuple[Watched, InflightCall]:
    watched = Watched(clock)
    call = cast(InflightCall, watched)
    running.add(call, timeout_s)
    return watched, call


def test_each_call_expires_when_its_own_limit_is_over(clock: Clock) -> None:
    running = InflightCalls()
    early, first = start(running, clock, 10)
    clock.go_to(4)
    late, second = start(running, clock, 10)
    short, third = start(running, clock, 1)
    clock.go_to(6)
    running.discard(third, 1)
    clock.go_to(11)
    running.discard(first, 10)
    clock.go_to(15)
    running.discard(second, 10)
    assert (early.expired_s[:1], late.expired_s, short.expired_s[:1]) == ([10], [14], [5])
    assert len(running) == 0


def test_a_call_that_ended_in_time_is_told_nothing(clock: Clock) -> None:
    running = InflightCalls()
    watched, call = start(running, clock, 10)
    clock.go_to(9)
    running.discard(call, 10)
    clock.go_to(100)
    assert watched.expired_s == []
    assert clock.timers == [], "no timer outlives the calls it watches"


def test_a_call_that_takes_long_to_stop_does_not_delay_the_next_one(clock: Clock) -> None:
    running = InflightCalls()
    deaf, _ = start(running, clock, 10)
    clock.go_to(5)
    other, _ = start(running, clock, 10)
    clock.go_to(16)
    assert deaf.expired_s == [10]
    assert other.expired_s == [15]


def test_a_hundred_calls_with_one_limit_need_one_timer(clock: Clock) -> None:
    running = InflightCalls()
    for _ in range(100):
        start(running, clock, 10)
    assert len(clock.timers) == 1
    assert len(running) == len([*running]) == 100


def test_a_limit_is_watched_again_after_it_was_idle(clock: Clock) -> None:
    running = InflightCalls()
    _, call = start(running, clock, 10)
    running.discard(call, 10)
    clock.go_to(50)
    again, _ = start(running, clock, 10)
    clock.go_to(60)
    assert again.expired_s == [60]
