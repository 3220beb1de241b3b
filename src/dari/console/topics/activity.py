"""Topic `activity`: memory and processor load of the hub, the daemons and the servers, every two seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.console.live import TopicOptions
from dari.console.tools.activity import ProcessView, list_processes

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

STEP_S = 2.0


class ProcessLoad(Struct, frozen=True, kw_only=True):
    process: ProcessView
    cpu: float
    """Of one processor since the event before: 1.0 is all of it."""


class ActivityNow(Struct, frozen=True, kw_only=True):
    now_unix: float
    processes: list[ProcessLoad]


async def follow_activity(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[ActivityNow]:
    before: dict[int, float] = {}
    measured_s = time.monotonic()
    while True:
        found = await list_processes(backends)
        now_s = time.monotonic()
        passed_s, measured_s = max(0.001, now_s - measured_s), now_s
        loads = [
            ProcessLoad(process=one, cpu=round(max(0.0, one.cpu_s - before.get(one.pid, one.cpu_s)) / passed_s, 3))
            for one in found
        ]
        before = {one.pid: one.cpu_s for one in found}
        yield ActivityNow(now_unix=time.time(), processes=loads)
        await asyncio.sleep(STEP_S)
