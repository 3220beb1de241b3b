"""Runs an async test on a loop of its kind, inside a deadline; a callback that raises fails the test."""

from __future__ import annotations

import asyncio
import inspect

import pytest
import uvloop

DEADLINE_S = 45.0
# What `pytest.mark.timeout` leaves for clean-up, before it ends the whole process.
_MARGIN_S = 5.0


def run(item: pytest.Function) -> bool | None:
    """For `pytest_pyfunc_call`. `pytest.mark.timeout(n)` gives a test more time than DEADLINE_S."""
    test = item.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    arguments = {name: value for name, value in item.funcargs.items() if name in wanted}
    marker = item.get_closest_marker("timeout")
    deadline_s = marker.args[0] - _MARGIN_S if marker is not None else DEADLINE_S
    kind = item.callspec.params.get("loop_kind", "uvloop") if hasattr(item, "callspec") else "uvloop"
    problems: list[dict[str, object]] = []

    async def inside() -> None:
        # A callback that raises only logs; here it fails the test.
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        async with asyncio.timeout(deadline_s):
            await test(**arguments)

    with asyncio.Runner(debug=False, loop_factory=uvloop.new_event_loop if kind == "uvloop" else None) as runner:
        runner.run(inside())
    assert not problems, problems
    return True
