"""What a test must not leave behind: tasks, sockets, connections, flows that never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.waiting import until

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


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """What ran and was open before is all that runs and is open afterwards."""
    tasks, sockets = asyncio.all_tasks(), open_sockets()
    yield
    await until(lambda: asyncio.all_tasks() <= tasks, lambda: asyncio.all_tasks() - tasks)
    await until(lambda: open_sockets() <= sockets, lambda: open_sockets() - sockets)
