"""Long waits: the caller hears that it still goes on, and whoever cancels the tool ends the wait behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from dari.core.context import Context

T = TypeVar("T")
TICK_S = 2.0


async def told_while(work: Awaitable[T], context: Context, limit_s: float, message: str) -> T:
    """The result of `work`; until then progress in seconds of `limit_s`."""
    task = asyncio.ensure_future(work)
    waited_s = 0.0
    try:
        while not (await asyncio.wait({task}, timeout=TICK_S))[0]:
            waited_s = min(waited_s + TICK_S, limit_s)
            await context.progress(waited_s, limit_s, message)
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})
