"""What the console's tools and topics see of a proxy that runs in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from dari.console.backends import ConsoleBackends
from dari.console.live import Follow, TopicOptions
from tests.support.proxy_service import Rig, proxy

T = TypeVar("T")
DEADLINE_S = 20.0


@dataclass
class ProxyBackends:
    """The one backend that they use."""

    rig: Rig

    def proxy(self, starts: bool) -> object:
        return self.rig.service


async def soon(work: Awaitable[T]) -> T:
    async with asyncio.timeout(DEADLINE_S):
        return await work


class Follower:
    """One page that follows a topic."""

    def __init__(self, events: AsyncIterator[Any]) -> None:
        self._events = events

    async def next(self) -> Any:
        return await soon(anext(self._events))


@asynccontextmanager
async def console_proxy(directory: Path) -> AsyncIterator[tuple[Rig, ConsoleBackends]]:
    async with proxy(directory) as rig:
        yield rig, cast(ConsoleBackends, ProxyBackends(rig))


@asynccontextmanager
async def following(backends: ConsoleBackends, follow: Follow) -> AsyncIterator[Follower]:
    events = follow(backends, "", TopicOptions())
    try:
        yield Follower(events)
    finally:
        await events.aclose()  # type: ignore[attr-defined]
