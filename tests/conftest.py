"""`async def` tests run natively under asyncio, each inside a deadline that holds even if its clean-up hangs."""

from __future__ import annotations

import asyncio
import inspect
import io
import signal

import pytest

DEADLINE_S = 20
CLEAN_UP_S = 5

# A shell that puts the run into the background makes it ignore Ctrl-C, and every child of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups of `--dist loadgroup` are kept: pytest-xdist 3.8 writes them where pytest 9.2 does not look any more."""
    if not config.getoption("loadgroup", False):
        return
    for item in items:
        grouped = vars(item).get("_nodeid")
        if grouped and grouped != item.nodeid:
            item._id = type(item._id).parse(grouped)  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    runner = asyncio.Runner(debug=False)
    loop = runner.get_loop()
    task = loop.create_task(test(**arguments))
    where = io.StringIO()
    # No task beside the test's own: some tests count them.
    loop.call_later(DEADLINE_S, lambda: (task.print_stack(file=where), task.cancel()))
    loop.call_later(DEADLINE_S + CLEAN_UP_S, loop.stop)
    try:
        loop.run_until_complete(task)
    except (asyncio.CancelledError, RuntimeError):
        if not where.getvalue():
            raise
        pytest.fail(f"not done in {DEADLINE_S} s:\n{where.getvalue()}", pytrace=False)
    finally:
        # A task that ignores its end would keep the loop from closing for ever; it is left behind.
        if task.done():
            runner.close()
    return True
