"""Topic `crab-endpoint`: whether crab-mcp serves HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from dari.console.crab_endpoint import CrabEndpointState
from dari.console.live import TopicOptions

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends


async def follow_crab_endpoint(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[CrabEndpointState]:
    endpoint = backends.crab_endpoint
    while True:
        changed = endpoint.changed  # before the look: a change in between is seen at the next turn
        yield endpoint.state()
        await changed.wait()
