"""Every async test of the engine runs on stock asyncio and on uvloop: they differ in what breaks proxies."""

from __future__ import annotations

import asyncio
import inspect

import pytest
import uvloop

DEADLINE_S = 45


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function):
        metafunc.fixturenames.append("loop_kind")
        metafunc.parametrize("loop_kind", ["asyncio", "uvloop"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}

    problems: list[dict[str, object]] = []

    async def run() -> None:
        # A callback that raises only logs; here it fails the test.
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        async with asyncio.timeout(DEADLINE_S):
            await test(**arguments)

    is_uvloop = pyfuncitem.callspec.params["loop_kind"] == "uvloop"
    with asyncio.Runner(debug=False, loop_factory=uvloop.new_event_loop if is_uvloop else None) as runner:
        runner.run(run())
    assert not problems, problems
    return True
