"""What a test must not leave behind: tasks, sockets, connections, flows that never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

_FDS = Path("/proc/self/fd")


def open_sockets() -> set[str]:
    """By inode; nothing where there is no /proc."""
    found: set[str] = set()
    for entry in _FDS.iterdir() if _FDS.is_dir() else ():
        try:
            name = str(entry.readlink())
        except OSError:
            continue
        if name.startswith("socket:"):
            found.add(name)
    return found


async def eventually(
    is_so: Callable[[], bool], what: Callable[[], object] | None = None, limit_s: float = 30.0
) -> None:
    """For states that announce themselves by no event. `what` is shown when it does not come about."""
    try:
        async with asyncio.timeout(limit_s):
            while not is_so():  # noqa: ASYNC110 - nobody sets an event
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not so after {limit_s:g} s: {what() if what else is_so}") from None


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """What ran and was open before is all that runs and is open afterwards."""
    tasks, sockets = asyncio.all_tasks(), open_sockets()
    yield
    await eventually(lambda: asyncio.all_tasks() <= tasks, lambda: asyncio.all_tasks() - tasks)
    await eventually(lambda: open_sockets() <= sockets, lambda: open_sockets() - sockets)
