from __future__ import annotations

import asyncio

import pytest

from dari.bridge.limits.limiter import FairQueue
from dari.core.rate_limit import TokenBucket
from dari.errors import InvalidInput, TimedOut, Unavailable
from tests.support.fake_clock import FakeClock, settled


async def test_calls_beyond_the_concurrency_wait_for_a_slot() -> None:
    turnstile = FairQueue("s", FakeClock(), concurrency=2)
    await turnstile.enter()
    await turnstile.enter()
    third = asyncio.create_task(turnstile.enter())
    await settled()
    assert not third.done() and turnstile.waiting == 1
    turnstile.leave()
    await third
    assert (turnstile.running, turnstile.waiting) == (2, 0)


async def test_a_client_that_floods_waits_behind_itself() -> None:
    turnstile = FairQueue("s", FakeClock(), concurrency=1)
    await turnstile.enter("loud")
    order: list[str] = []

    async def call(client: str) -> None:
        await turnstile.enter(client)
        order.append(client)
        turnstile.leave()

    tasks = [asyncio.create_task(call("loud")) for _ in range(5)]
    await settled()
    tasks += [asyncio.create_task(call(client)) for client in ("quiet", "calm")]
    await settled()
    turnstile.leave()
    await asyncio.gather(*tasks)
    assert order == ["loud", "quiet", "calm", "loud", "loud", "loud", "loud"]


async def test_the_line_has_an_end_and_says_so() -> None:
    turnstile = FairQueue("s", FakeClock(), concurrency=1, line_calls=1)
    await turnstile.enter()
    waiting = asyncio.create_task(turnstile.enter())
    await settled()
    with pytest.raises(Unavailable):
        await turnstile.enter()
    turnstile.leave()
    await waiting


async def test_who_waits_past_the_deadline_is_sent_away_and_costs_no_slot() -> None:
    clock = FakeClock()
    turnstile = FairQueue("s", clock, concurrency=1, wait_s=30)
    await turnstile.enter()
    late = asyncio.create_task(turnstile.enter(wait_s=5))
    patient = asyncio.create_task(turnstile.enter())
    await settled()
    clock.advance(5)
    with pytest.raises(TimedOut, match="5 s"):
        await late
    turnstile.leave()
    await patient
    assert (turnstile.running, turnstile.waiting, clock.timers) == (1, 0, 0)


async def test_a_cancelled_caller_leaves_the_line() -> None:
    clock = FakeClock()
    turnstile = FairQueue("s", clock, concurrency=1)
    await turnstile.enter()
    gone = asyncio.create_task(turnstile.enter("a"))
    await settled()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert (turnstile.waiting, clock.timers) == (0, 0)
    turnstile.leave()
    assert turnstile.running == 0


async def test_a_caller_cancelled_in_the_moment_of_its_turn_gives_the_slot_back() -> None:
    turnstile = FairQueue("s", FakeClock(), concurrency=1)
    await turnstile.enter()
    unlucky = asyncio.create_task(turnstile.enter("a"))
    next_one = asyncio.create_task(turnstile.enter("b"))
    await settled()
    turnstile.leave()  # the turn of `unlucky` has come, its task has not run yet
    unlucky.cancel()
    await asyncio.gather(unlucky, return_exceptions=True)
    await next_one
    assert (turnstile.running, turnstile.waiting) == (1, 0)


async def test_calls_over_the_rate_go_through_when_their_token_comes() -> None:
    clock = FakeClock()
    turnstile = FairQueue("s", clock, bucket=TokenBucket(2, 1, clock.time()), concurrency=10)
    await turnstile.enter()
    tasks = [asyncio.create_task(turnstile.enter()) for _ in range(3)]
    await settled()
    done = []
    for _ in range(4):
        done.append(sum(task.done() for task in tasks))
        clock.advance(0.5)
        await settled()
    assert done == [0, 1, 2, 3]
    assert clock.timers == 0


async def test_a_cancelled_caller_uses_up_no_token() -> None:
    clock = FakeClock()
    turnstile = FairQueue("s", clock, bucket=TokenBucket(1, 1, clock.time()))
    await turnstile.enter()
    gone, patient = (asyncio.create_task(turnstile.enter(client)) for client in "ab")
    await settled()
    gone.cancel()  # and before its task runs, the token comes
    clock.advance(1)
    await patient
    await asyncio.gather(gone, return_exceptions=True)
    assert turnstile.running == 2


async def test_nobody_overtakes_those_who_wait() -> None:
    clock = FakeClock()
    turnstile = FairQueue("s", clock, bucket=TokenBucket(1, 1, clock.time()))
    await turnstile.enter()
    first = asyncio.create_task(turnstile.enter())
    await settled()
    clock.now += 1  # a token is there, and its timer has not run yet
    assert not turnstile.enter_now()
    clock.advance(0)
    await first


async def test_the_whole_line_can_be_sent_away() -> None:
    clock = FakeClock()
    turnstile = FairQueue("s", clock, concurrency=1)
    await turnstile.enter()
    tasks = [asyncio.create_task(turnstile.enter(str(at))) for at in range(3)]
    await settled()
    turnstile.refuse_all(Unavailable("s is down"))
    failures = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(failure) for failure in failures] == [Unavailable] * 3
    assert (turnstile.running, turnstile.waiting, clock.timers) == (1, 0, 0)


async def test_a_thousand_calls_in_ten_slots_never_see_an_eleventh() -> None:
    turnstile = FairQueue("s", FakeClock(), concurrency=10, line_calls=1000)
    inside = most = 0

    async def call(client: int) -> None:
        nonlocal inside, most
        await turnstile.enter(str(client % 7))
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        turnstile.leave()

    tasks = [asyncio.create_task(call(at)) for at in range(1000)]
    for at, task in enumerate(tasks):
        if at % 13 == 0:
            await asyncio.sleep(0)
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 10
    assert turnstile.waiting == 0


def test_no_slot_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput):
        FairQueue("s", FakeClock(), concurrency=0)
