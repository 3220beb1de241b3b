"""Live data of the page: topics that it subscribes to, each an async generator of events.

The first event of a topic is its whole present state, the later ones are changes. A generator is asked for its next
event when the browser has taken the last one, so a slow page costs no memory. What is pushed goes through a `Feed`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct, field

from dari.errors import NotFound

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

MAX_FEED = 1000
T = TypeVar("T")


class TopicOptions(Struct, frozen=True):
    """What the page says when it subscribes."""

    since: str = ""
    """What it saw last, in the topic's own words; empty: nothing."""
    filter: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


Follow = Callable[["ConsoleBackends", str, TopicOptions], AsyncIterator[Any]]
"""Events of a topic: the backends, what stands behind the colon of its name, and the options."""


class Topics:
    """Which topics there are, by the name before the colon."""

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends
        self._follow: dict[str, Follow] = {}

    def add(self, name: str, follow: Follow) -> None:
        self._follow[name] = follow

    def follow(self, topic: str, options: TopicOptions) -> AsyncIterator[Any]:
        name, _, argument = topic.partition(":")
        follow = self._follow.get(name)
        if follow is None:
            known = ", ".join(sorted(self._follow)) or "none"
            raise NotFound(f"no topic is named {name[:60]!r}", f"topics: {known}")
        return follow(self._backends, argument, options)


class Lost(Struct, frozen=True):
    """Events were dropped: the reader was too slow. What follows is read from the present state anew."""

    count: int


class TopicFeed(Generic[T]):
    """A bounded queue between what pushes and a generator that pulls: it drops the oldest and says so."""

    def __init__(self, limit: int = MAX_FEED) -> None:
        self._limit = limit
        self._items: deque[T] = deque()
        self._dropped = 0
        self._has_some = asyncio.Event()

    def put(self, item: T) -> None:
        if len(self._items) >= self._limit:
            self._items.popleft()
            self._dropped += 1
        self._items.append(item)
        self._has_some.set()

    async def take(self) -> list[T] | Lost:
        """Everything that has come since the last time, once there is something; `Lost` when some of it is gone."""
        await self._has_some.wait()
        self._has_some.clear()
        items, self._items = list(self._items), deque()
        dropped, self._dropped = self._dropped, 0
        return Lost(dropped + len(items)) if dropped else items

    async def hear(self, timeout_s: float) -> None:
        """Until something has come, for that long at most: for a topic that looks at the whole again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.take()
