"""Work without a task: awaited like any other."""

from __future__ import annotations

import asyncio

import pytest

from dari.core.pending import PendingResult
from dari.errors import Failed


async def test_its_value_is_what_is_made_of_the_end() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_result(20)
    assert await PendingResult(future, lambda done: done.result() + 1) == 21


async def test_its_failure_is_the_one_that_is_told() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_exception(ValueError("a detail"))

    def tell(done: asyncio.Future[int]) -> int:
        raise Failed(f"it broke: {done.exception()}")

    with pytest.raises(Failed, match="it broke: a detail"):
        await PendingResult(future, tell)


async def test_more_to_wait_for_is_waited_for() -> None:
    loop = asyncio.get_running_loop()
    first: asyncio.Future[int] = loop.create_future()
    second: asyncio.Future[int] = loop.create_future()
    first.set_result(1)
    second.set_result(2)
    assert await PendingResult(first, lambda _: PendingResult(second, lambda done: done.result())) == 2


async def test_cancelling_who_waits_ends_it_and_is_seen_to_the_end() -> None:
    loop = asyncio.get_running_loop()
    first: asyncio.Future[int] = loop.create_future()
    second: asyncio.Future[int] = loop.create_future()
    ends: list[str] = []

    def then(done: asyncio.Future[int]) -> PendingResult:
        ends.append("first" if done.cancelled() else "?")
        return PendingResult(second, lambda again: ends.append("second" if again.cancelled() else "?"))

    async def wait() -> object:
        return await PendingResult(first, then)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ends == ["first", "second"]
