"""A plugin of pytest for runs on several workers: a test that is stuck in C ends its worker, and so fails the run.

The time limit of a test is a signal, and Python handles signals between two of its own instructions: a parser in C that
went round for ever kept a whole run waiting. Here its stack is printed.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator

import pytest

GRACE_S = float(os.environ.get("DARI_STUCK_GRACE_S", "60"))
"""Beyond its time limit: so long a test that was interrupted may take to clean up."""
_stderr = os.dup(2)  # a test puts another file in its place


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    mark = item.get_closest_marker("timeout")
    limit_s = float(mark.args[0] if mark is not None and mark.args else item.config.getini("timeout") or 0)
    if not limit_s or not hasattr(item.config, "workerinput"):  # alone, somebody may be debugging it
        return (yield)
    faulthandler.dump_traceback_later(limit_s + GRACE_S, exit=True, file=_stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
