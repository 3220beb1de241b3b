"""Topic `approvals`: the whole queue, again whenever something in it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dari.console.live import TopicFeed, TopicOptions
from dari.console.tools.approvals import ApprovalQueueView, queue_view
from dari.core.approvals import ApprovalEvent

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

LOOK_S = 2.0
"""Changed servers and new files of projects are found by looking."""
PAUSE_S = 0.05
"""A burst of calls is one event."""


async def follow_approvals(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[ApprovalQueueView]:
    feed: TopicFeed[ApprovalEvent] = TopicFeed()
    stop = backends.approvals.queue.subscribe(feed.put)
    last: ApprovalQueueView | None = None
    try:
        while True:
            view = queue_view(backends)
            if last is None or replace(view, now_unix=last.now_unix) != last:
                last = view
                yield view
                await asyncio.sleep(PAUSE_S)
            await feed.hear(LOOK_S)
    finally:
        stop()
