"""The limits together, as a call passes them."""

from __future__ import annotations

import asyncio

import pytest

from dari.bridge.limits.circuit import CircuitState
from dari.bridge.limits.limiter import Limiter
from dari.errors import Failed, InvalidInput, TimedOut, Unavailable
from tests.support.fake_clock import FakeClock, settled


async def attempt(limiter: Limiter, error: BaseException | None = None, client: str = "") -> None:
    async with limiter.call(client):
        if error is not None:
            raise error


async def open_up(limiter: Limiter, times: int) -> None:
    for _ in range(times):
        with pytest.raises(Unavailable):
            await attempt(limiter, Unavailable("gone"))


async def test_a_server_that_cannot_be_reached_is_left_alone_and_found_again() -> None:
    clock = FakeClock()
    changes: list[CircuitState] = []
    limiter = Limiter("s", failures=2, recover_s=60, clock=clock, on_change=changes.append)
    await open_up(limiter, 2)
    with pytest.raises(Unavailable, match="2 times"):
        await attempt(limiter)
    clock.advance(60)
    await attempt(limiter)
    assert changes == ["open", "half-open", "closed"]


@pytest.mark.parametrize("error", [Unavailable("x"), TimedOut("x"), ConnectionResetError(), EOFError(), TimeoutError()])
async def test_what_says_that_the_server_is_ill_counts(error: Exception) -> None:
    limiter = Limiter("s", failures=1, clock=FakeClock())
    with pytest.raises(type(error)):
        await attempt(limiter, error)
    assert limiter.circuit is not None and limiter.circuit.state == "open"


@pytest.mark.parametrize("error", [InvalidInput("x"), Failed("the tool said no"), KeyError("a bug")])
async def test_an_error_that_the_server_answered_with_is_a_sign_of_health(error: Exception) -> None:
    limiter = Limiter("s", failures=2, clock=FakeClock())
    await open_up(limiter, 1)
    with pytest.raises(type(error)):
        await attempt(limiter, error)
    await open_up(limiter, 1)
    assert limiter.circuit is not None and limiter.circuit.state == "closed"


async def test_a_caller_who_leaves_says_nothing_about_the_server() -> None:
    limiter = Limiter("s", failures=1, concurrency=1, clock=FakeClock())
    entered = asyncio.Event()

    async def endless() -> None:
        async with limiter.call():
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(endless())
    await entered.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert limiter.circuit is not None and limiter.circuit.state == "closed"
    assert limiter.queue.running == 0


async def test_those_in_line_are_sent_away_when_the_circuit_opens() -> None:
    limiter = Limiter("s", failures=1, concurrency=1, rps=0.001, burst=1, clock=FakeClock())
    fail = asyncio.Event()

    async def failing() -> None:
        async with limiter.call():
            await fail.wait()
            raise Unavailable("gone")

    first = asyncio.create_task(failing())
    await settled()
    waiting = [asyncio.create_task(attempt(limiter)) for _ in range(3)]
    await settled()
    fail.set()
    results = await asyncio.gather(first, *waiting, return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 4
    assert (limiter.queue.running, limiter.queue.waiting) == (0, 0)


async def test_only_one_call_probes_when_many_come_at_once() -> None:
    clock = FakeClock()
    limiter = Limiter("s", failures=1, recover_s=1, clock=clock)
    await open_up(limiter, 1)
    clock.advance(1)
    reached = 0
    go_on = asyncio.Event()

    async def call() -> None:
        nonlocal reached
        async with limiter.call():
            reached += 1
            await go_on.wait()

    tasks = [asyncio.create_task(call()) for _ in range(10)]
    await settled()
    assert reached == 1
    go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results].count(Unavailable) == 9
    assert limiter.queue.running == 0


async def test_who_gets_a_turn_while_another_call_probes_is_refused_and_gives_it_back() -> None:
    clock = FakeClock()
    limiter = Limiter("s", failures=1, recover_s=60, rps=1 / 30, burst=1, clock=clock, wait_s=1000)
    await open_up(limiter, 1)
    clock.advance(60)
    assert limiter.queue.enter_now()  # takes the only token
    limiter.queue.leave()
    go_on = asyncio.Event()

    async def call() -> None:
        async with limiter.call():
            await go_on.wait()

    probe, other = asyncio.create_task(call()), asyncio.create_task(call())
    await settled()
    clock.advance(30)
    await settled()
    clock.advance(30)
    with pytest.raises(Unavailable):
        await other
    assert limiter.queue.running == 1
    go_on.set()
    await probe
    assert limiter.queue.running == 0


async def test_zero_failures_leave_the_circuit_out() -> None:
    limiter = Limiter("s", failures=0, clock=FakeClock())
    await open_up(limiter, 20)
    await attempt(limiter)


async def test_the_usual_clock_is_the_event_loop() -> None:
    limiter = Limiter("s", rps=1000, burst=1, concurrency=1)
    await asyncio.gather(*(attempt(limiter, client=str(at)) for at in range(5)))
    assert (limiter.queue.running, limiter.queue.waiting) == (0, 0)
