"""`async def` tests run natively under asyncio, each inside a deadline."""

from __future__ import annotations

import asyncio
import inspect

import pytest

DEADLINE_S = 20


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await test(**arguments)

    with asyncio.Runner(debug=False) as runner:
        runner.run(run())
    return True
