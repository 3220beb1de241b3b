"""The optional rate limit: a bucket per client that refills with time."""

from __future__ import annotations

import pytest

from dari.transport import guard
from dari.transport.guard import HttpRateLimit


class Time:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(guard, "time", clock)
    return clock


def test_a_burst_of_twice_the_rate_passes_and_then_the_rate(time: Time) -> None:
    limit = HttpRateLimit(10)
    assert [limit.allows("a") for _ in range(25)].count(True) == 20
    time.now_s += 0.5
    assert [limit.allows("a") for _ in range(25)].count(True) == 5
    time.now_s += 3600
    assert [limit.allows("a") for _ in range(25)].count(True) == 20


def test_one_client_does_not_use_up_the_rate_of_another(time: Time) -> None:
    limit = HttpRateLimit(1)
    while limit.allows("greedy"):
        pass
    assert limit.allows("modest")


def test_a_rate_below_one_lets_a_request_through_now_and_then(time: Time) -> None:
    limit = HttpRateLimit(0.5)
    assert limit.allows("a")
    assert not limit.allows("a")
    time.now_s += 2.1
    assert limit.allows("a")


def test_clients_that_stay_away_are_forgotten(time: Time) -> None:
    limit = HttpRateLimit(10)
    for number in range(5000):
        limit.allows(f"client {number}")
    time.now_s += 10
    limit.allows("another")
    assert len(limit._buckets) < 10


def test_forgetting_does_not_give_a_greedy_client_a_new_burst(time: Time) -> None:
    limit = HttpRateLimit(0.001)
    assert limit.allows("greedy")
    for number in range(5000):
        limit.allows(f"client {number}")
    time.now_s += 10
    assert not limit.allows("greedy")
