"""The states of a child, on a clock of the test's own."""

from __future__ import annotations

import pytest

from dari.bridge.children.supervision import RestartLimits, ServerState, Supervision


def supervised(chance: float = 0.0, **options: object) -> Supervision:
    return Supervision(RestartLimits(**options), chance=lambda: chance)  # type: ignore[arg-type]


def started(supervision: Supervision, now: float = 0.0) -> Supervision:
    supervision.starting(now)
    supervision.ready(now)
    return supervision


def test_a_start_leads_from_configured_to_ready() -> None:
    supervision = supervised()
    assert (supervision.state, supervision.wait_s(0)) == (ServerState.CONFIGURED, 0)
    supervision.starting(0)
    assert supervision.state is ServerState.STARTING
    supervision.ready(1)
    assert supervision.state is ServerState.READY


def test_each_restart_waits_twice_as_long_up_to_the_most() -> None:
    supervision = supervised(backoff_s=2, max_backoff_s=10, max_restarts=9, window_s=1e6)
    now, pauses = 0.0, []
    for _ in range(5):
        supervision.starting(now)
        assert supervision.failed(now, "broken") is ServerState.BACKOFF
        pause = supervision.wait_s(now)
        assert pause is not None
        pauses.append(pause)
        now += pause
    assert pauses == [2, 4, 8, 10, 10]


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 4.0), (0.5, 3.5), (1.0, 3.0)])
def test_jitter_takes_up_to_a_quarter_off(chance: float, pause: float) -> None:
    supervision = started(supervised(chance, backoff_s=4, jitter=0.25))
    supervision.failed(1, "broken")
    assert supervision.wait_s(1) == pause


def test_one_failure_more_than_the_restarts_allowed_is_a_crash_loop() -> None:
    supervision, now = supervised(max_restarts=3, backoff_s=1), 0.0
    states = []
    for _ in range(4):
        supervision.starting(now)
        states.append(supervision.failed(now, "broken"))
        now += supervision.wait_s(now) or 0
    assert states == [ServerState.BACKOFF, ServerState.BACKOFF, ServerState.BACKOFF, ServerState.CRASH_LOOP]
    assert supervision.snapshot().restarts == 3
    assert supervision.snapshot().last_error == "broken"


def test_after_a_crash_loop_one_attempt_is_on_probation() -> None:
    supervision = supervised(max_restarts=0, crash_loop_s=100)
    supervision.starting(0)
    assert supervision.failed(0, "broken") is ServerState.CRASH_LOOP
    assert supervision.wait_s(40) == 60
    supervision.starting(100)
    assert supervision.failed(101, "again") is ServerState.CRASH_LOOP


def test_probation_counts_for_a_loop_with_restarts_too() -> None:
    supervision, now = supervised(max_restarts=2, backoff_s=1, crash_loop_s=100), 0.0
    while supervision.state is not ServerState.CRASH_LOOP:
        supervision.starting(now)
        supervision.failed(now, "broken")
        now += supervision.wait_s(now) or 0
    supervision.starting(now)
    assert supervision.failed(now + 1, "again") is ServerState.CRASH_LOOP


def test_trouble_older_than_the_window_counts_no_more() -> None:
    supervision = supervised(max_restarts=1, backoff_s=1, window_s=60)
    supervision.starting(0)
    supervision.failed(0, "first")
    started(supervision, 1)
    assert supervision.failed(100, "much later") is ServerState.BACKOFF
    assert supervision.wait_s(100) == 1
    assert supervision.snapshot().failures == 1


@pytest.mark.parametrize(
    ("policy", "after_fault", "after_end"),
    [
        ("never", ServerState.STOPPED, ServerState.STOPPED),
        ("on-failure", ServerState.BACKOFF, ServerState.IDLE),
        ("always", ServerState.BACKOFF, ServerState.BACKOFF),
    ],
)
def test_the_policy_decides_what_an_end_leads_to(policy: str, after_fault: ServerState, after_end: ServerState) -> None:
    assert started(supervised(policy=policy)).failed(1, "x") is after_fault
    assert started(supervised(policy=policy)).ended(1) is after_end


def test_an_idle_child_starts_at_once_when_it_is_needed() -> None:
    supervision = started(supervised())
    supervision.idle()
    assert (supervision.state, supervision.wait_s(1)) == (ServerState.IDLE, 0)


@pytest.mark.parametrize("hold", ["stop", "quarantine"])
def test_what_is_held_starts_only_after_a_reset(hold: str) -> None:
    supervision = started(supervised())
    supervision.stop() if hold == "stop" else supervision.quarantine("its tools changed")
    held = supervision.state
    assert supervision.wait_s(1) is None
    assert supervision.failed(2, "its end") is held
    assert supervision.ended(2) is held
    supervision.reset()
    assert (supervision.state, supervision.wait_s(3)) == (ServerState.CONFIGURED, 0)


def test_a_stop_does_not_end_a_quarantine() -> None:
    supervision = supervised()
    supervision.quarantine("held")
    supervision.stop()
    assert supervision.state is ServerState.QUARANTINED
