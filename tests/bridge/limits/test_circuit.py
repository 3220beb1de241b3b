from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.bridge.limits.circuit import CircuitBreaker, CircuitState
from dari.errors import InvalidInput, Unavailable
from tests.support.fake_clock import FakeClock


def opened(clock: FakeClock, changes: list[CircuitState] | None = None) -> CircuitBreaker:
    circuit = CircuitBreaker(
        "s", clock, failures=3, recover_s=60, on_change=(changes if changes is not None else []).append
    )
    for _ in range(3):
        circuit.failed(circuit.admit())
    return circuit


def test_failures_in_a_row_open_it_and_a_success_between_them_does_not() -> None:
    circuit = CircuitBreaker("s", FakeClock(), failures=3)
    for good in (False, False, True, False, False):
        admitted = circuit.admit()
        (circuit.succeeded if good else circuit.failed)(admitted)
    assert circuit.state == "closed"
    circuit.failed(circuit.admit())
    assert circuit.state == "open"


def test_an_open_circuit_refuses_and_says_when_it_tries_again() -> None:
    clock = FakeClock()
    circuit = opened(clock)
    clock.advance(20)
    with pytest.raises(Unavailable, match=r"3 times.* 40 s") as caught:
        circuit.admit()
    assert "dari remote test s" in caught.value.hint


def test_after_the_recovery_time_one_call_probes_and_the_others_are_refused_until_it_ends() -> None:
    clock = FakeClock()
    changes: list[CircuitState] = []
    circuit = opened(clock, changes)
    clock.advance(60)
    assert circuit.state == "half-open"
    probe = circuit.admit()
    with pytest.raises(Unavailable):
        circuit.admit()
    circuit.succeeded(probe)
    assert circuit.state == "closed"
    circuit.succeeded(circuit.admit())
    assert changes == ["open", "half-open", "closed"]


def test_a_probe_that_fails_opens_it_for_the_whole_time_again() -> None:
    clock = FakeClock()
    circuit = opened(clock)
    clock.advance(60)
    circuit.failed(circuit.admit())
    assert (circuit.state, circuit.retry_in_s) == ("open", 60)


def test_a_probe_whose_caller_left_says_nothing_and_the_next_call_probes_at_once() -> None:
    clock = FakeClock()
    circuit = opened(clock)
    clock.advance(60)
    circuit.abandoned(circuit.admit())
    circuit.succeeded(circuit.admit())
    assert circuit.state == "closed"


def test_a_probe_that_hangs_does_not_lock_everybody_out() -> None:
    clock = FakeClock()
    circuit = opened(clock)
    clock.advance(60)
    stuck = circuit.admit()
    clock.advance(59)
    with pytest.raises(Unavailable):
        circuit.admit()
    clock.advance(1)
    fresh = circuit.admit()
    circuit.failed(stuck)  # what it says now is old news
    circuit.succeeded(fresh)
    assert circuit.state == "closed"


def test_calls_from_before_it_opened_neither_close_it_nor_prolong_it() -> None:
    clock = FakeClock()
    circuit = CircuitBreaker("s", clock, failures=2, recover_s=60)
    slow, slower = circuit.admit(), circuit.admit()
    circuit.failed(circuit.admit())
    circuit.failed(circuit.admit())
    clock.advance(30)
    circuit.succeeded(slow)
    assert circuit.state == "open"
    circuit.failed(slower)
    assert circuit.retry_in_s == 30


def test_a_late_failure_does_not_decide_about_a_probe() -> None:
    clock = FakeClock()
    circuit = CircuitBreaker("s", clock, failures=1, recover_s=60)
    slow = circuit.admit()
    circuit.failed(circuit.admit())
    clock.advance(60)
    probe = circuit.admit()
    circuit.failed(slow)
    circuit.abandoned(slow)
    circuit.succeeded(probe)
    assert circuit.state == "closed"


@pytest.mark.parametrize(("failures", "recover_s"), [(0, 1), (-1, 1), (1, 0)])
def test_a_circuit_without_meaning_is_refused(failures: int, recover_s: float) -> None:
    with pytest.raises(InvalidInput):
        CircuitBreaker("s", FakeClock(), failures=failures, recover_s=recover_s)


@given(st.lists(st.sampled_from(["start", "good", "bad", "left", "wait"]), max_size=80))
@settings(deadline=None)
def test_whatever_happens_at_most_one_call_is_out_while_it_is_not_closed(events: list[str]) -> None:
    clock = FakeClock()
    circuit = CircuitBreaker("s", clock, failures=2, recover_s=10)
    running: list[int] = []
    probes: list[int] = []
    started = 0.0
    for event in events:
        if event == "wait":
            clock.advance(5)
        elif event == "start":
            was_closed = circuit.state == "closed"
            try:
                admitted = circuit.admit()
            except Unavailable:
                assert not was_closed
                continue
            assert not probes or clock.time() - started >= 10 or was_closed
            running.append(admitted)
            if not was_closed:
                probes[:] = [admitted]  # one that hung for the recovery time is given up
                started = clock.time()
        elif running:
            admitted = running.pop(0)
            {"good": circuit.succeeded, "bad": circuit.failed, "left": circuit.abandoned}[event](admitted)
            if admitted in probes:
                probes.remove(admitted)
        if circuit.state != "closed":
            assert len(probes) <= 1
        else:
            probes.clear()
