from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.core.rate_limit import MAX_CLIENTS, ClientRateLimit, TokenBucket
from dari.errors import InvalidInput
from tests.support.fake_clock import FakeClock


def test_a_new_bucket_gives_its_burst_at_once_and_then_says_how_long_to_wait() -> None:
    bucket = TokenBucket(5, 10)
    assert [bucket.take(0.0) for _ in range(10)] == [0] * 10
    assert bucket.take(0.0) == pytest.approx(0.2)


def test_who_waits_as_long_as_told_gets_a_token() -> None:
    clock = FakeClock()
    bucket = TokenBucket(3, 1, clock.time())
    assert bucket.take(clock.time()) == 0
    clock.advance(bucket.take(clock.time()))
    assert bucket.take(clock.time()) == 0


def test_a_refusal_costs_nothing() -> None:
    clock = FakeClock()
    bucket = TokenBucket(1, 1, clock.time())
    bucket.take(clock.time())
    for _ in range(50):
        assert bucket.take(clock.time()) > 0
    clock.advance(1)
    assert bucket.take(clock.time()) == 0


@pytest.mark.parametrize(("rps", "burst"), [(0, 1), (-1, 1), (float("inf"), 1), (float("nan"), 1), (1, 0)])
def test_a_bucket_that_could_never_work_is_refused(rps: float, burst: int) -> None:
    with pytest.raises(InvalidInput):
        TokenBucket(rps, burst)


@given(
    rps=st.floats(0.1, 1000),
    burst=st.integers(1, 50),
    steps=st.lists(st.tuples(st.floats(0, 2), st.integers(0, 20)), max_size=40),
)
@settings(deadline=None)
def test_no_span_of_time_sees_more_than_the_burst_and_what_came_in(
    rps: float, burst: int, steps: list[tuple[float, int]]
) -> None:
    clock = FakeClock()
    bucket = TokenBucket(rps, burst, clock.time())
    taken: list[float] = []
    for seconds, calls in steps:
        clock.advance(seconds)
        taken += [clock.time() for _ in range(calls) if bucket.take(clock.time()) == 0]
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - taken[first]) * rps + 1e-6


@given(rps=st.floats(0.1, 1000), burst=st.integers(1, 50), calls=st.integers(1, 100))
@settings(deadline=None)
def test_a_patient_caller_gets_every_call_through_at_the_promised_rate(rps: float, burst: int, calls: int) -> None:
    clock = FakeClock()
    bucket = TokenBucket(rps, burst, clock.time())
    began = clock.time()
    for _ in range(calls):
        while wait_s := bucket.take(clock.time()):
            clock.advance(wait_s)
    assert clock.time() - began <= max(0, calls - burst) / rps + 1e-6


def test_takers_that_overdraw_are_served_in_order() -> None:
    bucket = TokenBucket(10, 5)
    assert [bucket.overdraw(0.0, 5), bucket.overdraw(0.0, 10), bucket.overdraw(0.0, 10)] == [0.0, 1.0, 2.0]
    bucket.give_back(10)
    assert bucket.overdraw(1.0, 0) == 0.0


class Clients:
    def __init__(self, rate: float, burst: float) -> None:
        self.now_s = 0.0
        self.limit = ClientRateLimit(rate, burst, lambda: self.now_s)

    def allowed(self, client: str, calls: int) -> int:
        return sum(self.limit.take(client) == 0 for _ in range(calls))


def test_a_burst_passes_and_then_the_rate() -> None:
    clients = Clients(10, 20)
    assert clients.allowed("a", 25) == 20
    assert clients.limit.take("a") == pytest.approx(0.1)
    clients.now_s += 0.5
    assert clients.allowed("a", 25) == 5
    clients.now_s += 3600
    assert clients.allowed("a", 25) == 20


def test_one_client_does_not_use_up_the_rate_of_another() -> None:
    clients = Clients(1, 2)
    assert clients.allowed("greedy", 5) == 2
    assert clients.allowed("modest", 1) == 1


def test_clients_that_stay_away_are_forgotten() -> None:
    clients = Clients(10, 20)
    for number in range(MAX_CLIENTS):
        clients.allowed(f"client {number}", 1)
    clients.now_s += 10
    clients.allowed("another", 1)
    assert len(clients.limit) == 1


def test_forgetting_does_not_give_a_greedy_client_a_new_burst() -> None:
    clients = Clients(0.001, 1)
    assert clients.allowed("greedy", 1) == 1
    for number in range(5000):
        clients.allowed(f"client {number}", 1)
    clients.now_s += 10
    assert clients.allowed("greedy", 1) == 0
