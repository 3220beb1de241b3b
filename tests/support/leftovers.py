"""What a test must not leave behind: tasks, sockets, connections, flows that never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.waiting import until

_FDS = Path("/proc/self/fd")


def open_descriptors() -> set[str]:
    """Each by its number and what it is open for, such as `7 socket:[4711]`; nothing where there is no /proc. Compare
    with <=: the garbage collector may close descriptors of earlier tests meanwhile."""
    found: set[str] = set()
    for entry in _FDS.iterdir() if _FDS.is_dir() else ():
        with suppress(OSError):  # closed meanwhile, as the one by which the folder is read
            found.add(f"{entry.name} {entry.readlink()}")
    return found


def open_sockets() -> set[str]:
    return {each for each in open_descriptors() if " socket:" in each}


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """What ran and was open before is all that runs and is open afterwards."""
    tasks, sockets = asyncio.all_tasks(), open_sockets()
    yield
    await until(lambda: asyncio.all_tasks() <= tasks, lambda: asyncio.all_tasks() - tasks)
    await until(lambda: open_sockets() <= sockets, lambda: open_sockets() - sockets)
