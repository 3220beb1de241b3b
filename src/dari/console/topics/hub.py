"""Topic `hub`: what runs, and what waits for a person; for the page's frame."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dari.console.live import TopicFeed, TopicOptions
from dari.core.approvals import ApprovalEvent
from dari.daemon.lock import lock_holder
from dari.proxy.daemon import CrabPaths
from dari.terminal.paths import CruxPaths
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

LOOK_S = 2.0


class HubState(Struct, frozen=True):
    version: str
    url: str
    daemons: dict[str, bool]
    """Which of crabd, cruxd and kebabd run."""
    servers: int
    failing: int
    """Servers whose entry cannot be used, or whose last start failed."""
    agents: int
    """Sessions of agents, over HTTP and over stdio."""
    waiting: int
    """Approvals that wait."""
    now_unix: float = 0.0


async def follow_hub(backends: ConsoleBackends, argument: str, options: TopicOptions) -> AsyncIterator[HubState]:
    feed: TopicFeed[ApprovalEvent] = TopicFeed()
    stop = backends.approvals.queue.subscribe(feed.put)
    last: HubState | None = None
    try:
        while True:
            state = await _look(backends)
            if state != last:
                last = state
                yield replace(state, now_unix=time.time())
            await feed.hear(LOOK_S)
    finally:
        stop()


async def _look(backends: ConsoleBackends) -> HubState:
    listed = backends.view.catalog().listed
    broken = sum(1 for one in listed if one.state == "broken")
    return HubState(
        version=VERSION,
        url=backends.url(),
        daemons=await asyncio.to_thread(_running),
        servers=sum(1 for one in listed if one.state == "ready"),
        failing=broken + sum(1 for one in backends.bridge.pool if one.has_failed and not one.is_active),
        agents=sum(each.sessions for each in backends.activity.clients()),
        waiting=len(backends.approvals.pending()),
    )


def _running() -> dict[str, bool]:
    from dari.knowledge.daemon import KebabPaths

    # Their locks, not their sockets: a connection every two seconds would keep an idle daemon from ending.
    locks = {"crabd": CrabPaths().lock, "cruxd": CruxPaths().lock, "kebabd": KebabPaths().lock}
    return {name: lock_holder(lock) is not None for name, lock in locks.items()}
