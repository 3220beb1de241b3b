"""What kebabd does by itself goes on, whatever one turn ends with."""

from __future__ import annotations

import asyncio
import logging
import sqlite3

import pytest

from dari.errors import Unavailable
from dari.knowledge.config import Settings
from dari.knowledge.upkeep import MAX_WAIT_S, Upkeep
from tests.support.waiting import until

TURNS = 4


@pytest.mark.parametrize("watches", [False, True])
@pytest.mark.parametrize(
    "error",
    [sqlite3.OperationalError("disk I/O error"), RecursionError(), ZeroDivisionError(), Unavailable("away", "")],
    ids=lambda error: type(error).__name__,
)
async def test_a_turn_that_fails_is_logged_and_the_next_one_comes(
    error: Exception, watches: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def settings() -> Settings:
        raise error

    with caplog.at_level(logging.WARNING, "dari.kebab"):
        running = asyncio.create_task(Upkeep(settings, look_s=0.001).run(watches=watches))
        await until(lambda: len(caplog.records) >= TURNS or running.done())
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    has_traceback = not isinstance(error, Unavailable)
    assert all(bool(record.exc_info) is has_traceback for record in caplog.records)


def test_the_wait_after_surprises_doubles_up_to_a_limit() -> None:
    def settings() -> Settings:
        raise AssertionError

    upkeep = Upkeep(settings, look_s=10)
    assert [upkeep._wait_s(count) for count in (0, 1, 2)] == [10, 20, 40]
    assert upkeep._wait_s(1000) == MAX_WAIT_S
