"""Waiting for what announces itself by no event: looked at every few milliseconds, with a deadline, never spinning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 30.0
INTERVAL_S = 0.005


async def until(
    holds: Callable[[], object], shown: Callable[[], object] | None = None, within_s: float = PATIENCE_S
) -> None:
    """Return when `holds()` is true. `shown` says what to print when it never is."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {within_s:g} s: {shown() if shown else holds}")
        await asyncio.sleep(INTERVAL_S)


def wait_until(holds: Callable[[], object], within_s: float = PATIENCE_S, interval_s: float = INTERVAL_S) -> None:
    """The same where no event loop runs."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {within_s:g} s: {holds}")
        time.sleep(interval_s)


async def turn_until(
    holds: Callable[[], object], shown: Callable[[], object] | None = None, within_s: float = PATIENCE_S
) -> None:
    """Look at every turn of the loop: for a state of this very loop that lasts a moment and that a pause would miss."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {within_s:g} s: {shown() if shown else holds}")
        await asyncio.sleep(0)
