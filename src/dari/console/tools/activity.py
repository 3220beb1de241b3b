"""`dari_activity_*`: what agents did and what it costs, as numbers for charts.

A page asks again and again, so these calls leave no records: they would be most of the log.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from dari.core.audit.activity import KEPT_MINUTES, CallActivity, GroupBy
from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.daemon.lock import lock_holder
from dari.errors import Unavailable
from dari.knowledge.daemon import KebabPaths
from dari.process.usage import usage_of
from dari.proxy.daemon import CrabPaths
from dari.terminal.paths import CruxPaths

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

MAX_STEPS = 288


class ProcessView(Struct, frozen=True, kw_only=True):
    """A process of ours with everything below it."""

    name: str
    kind: Literal["hub", "daemon", "server"]
    pid: int
    processes: int
    memory_bytes: int
    cpu_s: float


class ActivityTools:
    """Tools named `dari_activity_<name>`."""

    prefix = "dari_activity"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @tool(scope=ADMIN, read_only=True, output="as_is", is_recorded=False)
    async def calls(
        self,
        minutes: Annotated[int, Meta(description="How far back", ge=1, le=KEPT_MINUTES)] = 60,
        steps: Annotated[int, Meta(description="Points over that time, of whole minutes", ge=1, le=MAX_STEPS)] = 60,
        group_by: Annotated[GroupBy, Meta(description="What each series is")] = "tool",
        who: Annotated[str, Meta(description="One caller as the log names it; empty: all", max_length=300)] = "",
        part: Annotated[str, Meta(description="One part; empty: all", max_length=40)] = "",
        agents_only: Annotated[bool, Meta(description="Without what people do in the console")] = True,
    ) -> CallActivity:
        """Count calls over time by tool, part, outcome or caller; returns series with failures and tokens read."""
        index = self._backends.bridge.activity
        if index is None:
            raise Unavailable("this hub records nothing", "start it with its audit log")
        await asyncio.to_thread(index.open)
        return index.calls(minutes, steps, group_by, who, part, agents_only=agents_only)


async def list_processes(backends: ConsoleBackends) -> list[ProcessView]:
    servers = [(one.id, one.pid) for one in backends.bridge.statuses() if one.pid is not None]
    return await asyncio.to_thread(_measure, servers)


def _measure(servers: list[tuple[str, int]]) -> list[ProcessView]:
    locks = {"crabd": CrabPaths().lock, "cruxd": CruxPaths.of_environment().lock, "kebabd": KebabPaths().lock}
    named: list[tuple[str, Literal["hub", "daemon", "server"], int]] = [("hub", "hub", os.getpid())]
    named += [(name, "daemon", pid) for name, lock in locks.items() if (pid := lock_holder(lock)) is not None]
    named += [(name, "server", pid) for name, pid in servers]
    used = usage_of([pid for _, _, pid in named])
    found = []
    for name, kind, pid in named:
        if (one := used.get(pid)) is not None:
            measured = {"processes": one.processes, "memory_bytes": one.memory_bytes}
            found.append(ProcessView(name=name, kind=kind, pid=pid, cpu_s=one.cpu_s, **measured))
    return found
