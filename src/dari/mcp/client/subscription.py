"""Events of a server as an async iterator, the same in both eras."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any, Self

from msgspec import Raw

from dari.core.events import ListChanged, ListKind, ResourceUpdated
from dari.errors import DariError, TimedOut, Unavailable
from dari.mcp.client.events import Backlog, Event, LogMessage, OnEvent, read_event
from dari.mcp.client.pending import FOREVER
from dari.mcp.client.session import McpClientSession
from dari.rpc.codec import encode

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
FAREWELL_S = 5.0
_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 30.0


class EventListener:
    """Hands what was asked for to a sink, for as long as it is open.

    A stream that breaks is opened again. Events may have passed meanwhile, so everything that was asked for
    is then reported as changed: an event says "look again", never what is new.
    """

    def __init__(
        self, session: McpClientSession, sink: OnEvent, *, kinds: Iterable[ListKind], uris: Iterable[str]
    ) -> None:
        self._session = session
        self._sink = sink
        self._kinds = frozenset(kinds)
        self._uris = tuple(dict.fromkeys(uris))
        self._subscribed: list[str] = []
        self._stop: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_end: Callable[[DariError], object] | None = None

    async def open(self, timeout_s: float) -> None:
        """Returns once the server listens; raises when it refuses."""
        session = self._session
        self._stop = session.feed.add(self._offer, self._missed)
        if not session.is_stateless:
            await session.follow()
            for uri in self._uris:
                await session.subscribe(uri, timeout_s)
                self._subscribed.append(uri)
        elif self._kinds or self._uris:
            self._task = asyncio.get_running_loop().create_task(self._listen())
            try:
                async with asyncio.timeout(timeout_s):
                    await asyncio.shield(self._acknowledged)
            except TimeoutError:
                raise TimedOut(f"subscriptions/listen was not acknowledged within {timeout_s:g} s") from None

    async def close(self) -> None:
        if self._stop is not None:
            self._stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._acknowledged.cancel()
        for uri in self._subscribed:
            try:
                await self._session.unsubscribe(uri, FAREWELL_S)
            except DariError:
                pass  # a subscriber that leaves ignores it
        self._subscribed.clear()

    async def _listen(self) -> None:
        params = encode({"notifications": self._filter()})
        loop, pause_s = asyncio.get_running_loop(), _FIRST_PAUSE_S
        while True:
            began_s = loop.time()
            try:
                await self._session.send("subscriptions/listen", params, timeout_s=FOREVER, on_notice=self._noticed)
            except DariError as error:
                if not self._acknowledged.done():
                    self._acknowledged.set_exception(error)
                    return
                if not isinstance(error, Unavailable) or self._session.conversation.ended.done():
                    if self.on_end is not None:
                        self.on_end(error)
                    return
            if loop.time() - began_s > _MAX_PAUSE_S:
                pause_s = _FIRST_PAUSE_S  # a server that ends every stream at once is asked less and less often
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(pause_s * 2, _MAX_PAUSE_S)

    def _filter(self) -> dict[str, Any]:
        wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in sorted(self._kinds)}
        if self._uris:
            wanted["resourceSubscriptions"] = self._uris
        return wanted

    def _noticed(self, method: str, params: Raw) -> None:
        if method != ACKNOWLEDGED:
            self._offer(read_event(method, params))
        elif not self._acknowledged.done():
            self._acknowledged.set_result(None)
        else:
            self._missed()

    def _offer(self, event: Event) -> None:
        if isinstance(event, ListChanged) and event.kind not in self._kinds:
            return
        # MCP allows a server to name a part of what was subscribed, so any URI passes.
        if isinstance(event, ResourceUpdated) and not self._uris:
            return
        self._sink(event)

    def _missed(self) -> None:
        for kind in sorted(self._kinds):
            self._sink(ListChanged(kind))
        for uri in self._uris:
            self._sink(ResourceUpdated(uri))


class Subscription:
    """`async with client.events(…) as events: async for event in events: …`"""

    def __init__(
        self, session: McpClientSession, *, kinds: Iterable[ListKind], uris: Iterable[str], logs: bool, timeout_s: float
    ) -> None:
        self._backlog = Backlog()
        self._logs = logs
        self._session = session
        self._timeout_s = timeout_s
        self._listening = EventListener(session, self._take, kinds=kinds, uris=uris)
        self._listening.on_end = self._backlog.end

    @property
    def dropped(self) -> int:
        """How many events were dropped because the subscriber was too slow."""
        return self._backlog.dropped

    async def __aenter__(self) -> Self:
        try:
            await self._listening.open(self._timeout_s)
        except BaseException:
            await self._listening.close()
            raise
        self._session.conversation.ended.add_done_callback(self._on_end)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._session.conversation.ended.remove_done_callback(self._on_end)
        await self._listening.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return await self._backlog.take()

    def _take(self, event: Event) -> None:
        if self._logs or not isinstance(event, LogMessage):
            self._backlog.put(event)

    def _on_end(self, ended: asyncio.Future[DariError]) -> None:
        if not ended.cancelled():
            self._backlog.end(ended.result())
