from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.bridge.limits.bucket import TokenBucket
from dari.errors import InvalidInput
from tests.bridge.limits.fake_clock import FakeClock


def test_a_new_bucket_gives_its_burst_at_once_and_then_says_how_long_to_wait() -> None:
    bucket = TokenBucket(5, 10, FakeClock())
    assert [bucket.take() for _ in range(10)] == [0] * 10
    assert bucket.take() == pytest.approx(0.2)


def test_who_waits_as_long_as_told_gets_a_token() -> None:
    clock = FakeClock()
    bucket = TokenBucket(3, 1, clock)
    assert bucket.take() == 0
    clock.advance(bucket.take())
    assert bucket.take() == 0


def test_a_refusal_costs_nothing() -> None:
    clock = FakeClock()
    bucket = TokenBucket(1, 1, clock)
    bucket.take()
    for _ in range(50):
        assert bucket.take() > 0
    clock.advance(1)
    assert bucket.take() == 0


def test_without_a_burst_one_second_of_calls_is_kept() -> None:
    assert TokenBucket(2.5, None, FakeClock()).burst == 3
    assert TokenBucket(0.1, None, FakeClock()).burst == 1


@pytest.mark.parametrize(("rps", "burst"), [(0, 1), (-1, 1), (float("inf"), 1), (float("nan"), 1), (1, 0)])
def test_a_bucket_that_could_never_work_is_refused(rps: float, burst: int) -> None:
    with pytest.raises(InvalidInput):
        TokenBucket(rps, burst, FakeClock())


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
    bucket = TokenBucket(rps, burst, clock)
    taken: list[float] = []
    for seconds, calls in steps:
        clock.advance(seconds)
        taken += [clock.time() for _ in range(calls) if bucket.take() == 0]
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - taken[first]) * rps + 1e-6


@given(rps=st.floats(0.1, 1000), burst=st.integers(1, 50), calls=st.integers(1, 100))
@settings(deadline=None)
def test_a_patient_caller_gets_every_call_through_at_the_promised_rate(rps: float, burst: int, calls: int) -> None:
    clock = FakeClock()
    bucket = TokenBucket(rps, burst, clock)
    began = clock.time()
    for _ in range(calls):
        while wait_s := bucket.take():
            clock.advance(wait_s)
    assert clock.time() - began <= max(0, calls - burst) / rps + 1e-6
