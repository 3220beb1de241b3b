"""Topic `breakpoints`: what breakpoint rules hold now."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.console.live import TopicOptions
from dari.proxy.api.breakpoints import HeldFlow

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

LOOK_S = 2.0
"""A client that hangs up tells nobody: it is seen at the next look."""


class HeldState(Struct, frozen=True):
    """Longest held first. `now_unix` is when `resumes_in_s` of each was true."""

    held: list[HeldFlow]
    now_unix: float


async def follow_breakpoints(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[HeldState]:
    breakpoints = backends.proxy(False).breakpoints
    now = await breakpoints.held()
    while True:
        yield HeldState(now.held, time.time())
        ids = [one.id for one in now.held]
        while True:
            now = await breakpoints.wait(LOOK_S, now.revision)
            if [one.id for one in now.held] != ids:
                break
