"""Resource subscriptions: one per URI and server, renewed after every restart."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from dari.bridge.upstream.caller import SYSTEM_CALLER
from dari.bridge.upstream.sessions import UpstreamSessions
from dari.core.events import ResourceUpdated
from dari.errors import DariError
from dari.log import format_event

RESUBSCRIBE_DELAY_S = 2.0
MAX_RESUBSCRIBE_DELAY_S = 60.0
"""After many refusals in a row: a server may not know subscriptions at all."""
FIRST_SUBSCRIBE_TIMEOUT_S = 5.0
"""How long a subscriber waits for the server to take note; after that it goes on behind its back."""
_log = logging.getLogger("dari.bridge")


class Subscriptions:
    def __init__(self, sessions: UpstreamSessions, on_update: Callable[[str], object]) -> None:
        self._sessions = sessions
        self._on_update = on_update
        self._wanted: Counter[str] = Counter()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tried: dict[str, asyncio.Event] = {}

    async def add(self, uri: str) -> None:
        """Returns when the server has subscribed, or could not be reached."""
        self._wanted[uri] += 1
        if uri not in self._tasks:
            self._tried[uri] = asyncio.Event()
            self._tasks[uri] = asyncio.get_running_loop().create_task(self._follow(uri, self._tried[uri]))
        try:
            async with asyncio.timeout(FIRST_SUBSCRIBE_TIMEOUT_S):
                await self._tried[uri].wait()
        except TimeoutError:
            pass

    async def remove(self, uri: str) -> None:
        if not self._wanted[uri]:
            return
        self._wanted[uri] -= 1
        if not self._wanted[uri]:
            del self._wanted[uri], self._tried[uri]
            await self._end(self._tasks.pop(uri))

    async def close(self) -> None:
        self._wanted.clear()
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            await self._end(task)

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, uri: str, tried: asyncio.Event) -> None:
        """As long as it is wanted. The server is not ended for idleness meanwhile."""
        pause_s = RESUBSCRIBE_DELAY_S
        while True:
            try:
                async with (
                    self._sessions.lease(SYSTEM_CALLER) as session,
                    session.client.events(lists=(), uris=[uri], logs=False) as events,
                ):
                    tried.set()
                    pause_s = RESUBSCRIBE_DELAY_S
                    async for update in events:
                        if isinstance(update, ResourceUpdated):
                            self._on_update(update.uri)
            except DariError as error:
                _log.info(format_event("bridge", "subscription", f"uri={uri} {error.message}"))
            tried.set()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, MAX_RESUBSCRIBE_DELAY_S)
