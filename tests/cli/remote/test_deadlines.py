"""`--timeout` bounds what a server takes, not what a person takes."""

from __future__ import annotations

import asyncio

import pytest

from dari.cli.remote.progress import Deadline
from dari.errors import TimedOut

NEVER = asyncio.Event


async def test_a_block_that_takes_too_long_is_timed_out_and_named() -> None:
    with pytest.raises(TimedOut, match=r"tools/list.* 1 ms"):
        async with Deadline(1).over("tools/list"):
            await NEVER().wait()


async def test_without_a_limit_nothing_is_bounded() -> None:
    deadline = Deadline()
    async with deadline.over("x"):
        with deadline.paused():
            pass
    assert deadline.limit_s is None


async def test_the_clock_stands_still_while_a_person_is_asked() -> None:
    deadline, answered = Deadline(20), asyncio.Event()
    async with deadline.over("x"):
        with deadline.paused(), deadline.paused():
            asyncio.get_running_loop().call_later(0.1, answered.set)
            await answered.wait()


async def test_the_clock_goes_on_after_the_answer() -> None:
    deadline = Deadline(20)
    with pytest.raises(TimedOut):
        async with deadline.over("x"):
            with deadline.paused():
                pass
            await NEVER().wait()


async def test_every_block_has_the_whole_time_and_outside_of_one_nothing_is_paused() -> None:
    deadline = Deadline(60_000)
    for _ in range(2):
        async with deadline.over("x"):
            pass
    with deadline.paused():
        pass


async def test_ctrl_c_is_no_time_out() -> None:
    entered = asyncio.Event()

    async def work() -> None:
        async with Deadline(60_000).over("x"):
            entered.set()
            await NEVER().wait()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
