"""Faults are tried on stock asyncio and on uvloop; a module with `LOOPS` chooses."""

from __future__ import annotations

import inspect

import pytest

from tests.proxy.clients import loops


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function):
        metafunc.fixturenames.append("loop_kind")
        metafunc.parametrize("loop_kind", getattr(metafunc.module, "LOOPS", ["asyncio", "uvloop"]))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return loops.run(pyfuncitem)
