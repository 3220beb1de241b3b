"""How long a first list waits, told by the timers and not by a clock."""

from __future__ import annotations

import asyncio

from dari.bridge.gateway.gateway import EXTEND_S, MAX_WAIT_S, WAIT_S, StartupWait


def waiting(*ids: str) -> StartupWait:
    settling = StartupWait()
    for id in ids:
        settling.expect(id)
    begun = settling.wait()
    assert begun is not None
    begun.close()
    return settling


def left_s(settling: StartupWait) -> float:
    assert settling._timer is not None
    return settling._timer.when() - asyncio.get_running_loop().time()


async def test_it_is_over_when_everybody_is_here() -> None:
    settling = waiting("a", "b")
    for id in ("a", "b"):
        settling.check()
        assert not settling.is_over
        settling.arrived(id)
    settling.check()
    assert settling.is_over
    assert settling.wait() is None
    settling.close()


async def test_nobody_expected_is_nobody_waited_for() -> None:
    settling = StartupWait()
    settling.check()
    assert settling.wait() is None


async def test_the_first_question_begins_two_seconds() -> None:
    settling = waiting("a")
    assert WAIT_S - 1 < left_s(settling) <= WAIT_S
    settling.close()


async def test_whoever_answers_gives_the_next_a_moment_more_but_never_less_and_not_for_ever() -> None:
    settling = waiting("a", "b", "c")
    settling.arrived("a")
    assert WAIT_S - 1 < left_s(settling) <= WAIT_S, "two seconds are more than one"
    settling._latest_s = asyncio.get_running_loop().time() + EXTEND_S / 2
    settling.arrived("b")
    assert left_s(settling) <= EXTEND_S / 2
    assert MAX_WAIT_S > WAIT_S
    settling.close()


async def test_the_end_of_the_wait_is_for_everybody() -> None:
    settling = StartupWait(0.0)
    settling.expect("a")
    first, second = settling.wait(), settling.wait()
    assert first is not None and second is not None
    await asyncio.gather(first, second)
    assert settling.is_over
