"""An `async def` test runs in a loop, inside a deadline that holds even if its clean-up hangs."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import Callable

import pytest

DEADLINE_S = 45
CLEAN_UP_S = 5


def run_async_test(
    item: pytest.Function, loop: asyncio.AbstractEventLoop, close: Callable[[], None] = lambda: None
) -> None:
    """Run it to its end; `close` is called then."""
    wanted = inspect.signature(item.obj).parameters
    arguments = {name: value for name, value in item.funcargs.items() if name in wanted}
    marker = item.get_closest_marker("timeout")
    deadline_s = DEADLINE_S if marker is None else max(DEADLINE_S, marker.args[0] - 3 * CLEAN_UP_S)
    task = loop.create_task(item.obj(**arguments))
    where = io.StringIO()
    # No task beside the test's own: some tests count them.
    timers = (
        loop.call_later(deadline_s, lambda: (task.print_stack(file=where), task.cancel())),
        loop.call_later(deadline_s + CLEAN_UP_S, loop.stop),
    )
    try:
        loop.run_until_complete(task)
    except (asyncio.CancelledError, RuntimeError):
        if not where.getvalue():
            raise
        pytest.fail(f"not done in {deadline_s} s:\n{where.getvalue()}", pytrace=False)
    finally:
        # A task that ignores its end would keep the loop from closing for ever; it is left behind.
        if task.done():
            close()
        for timer in timers:
            timer.cancel()
