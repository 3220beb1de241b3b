"""Idle connections to origins, newest first: the newest is the least likely to have been closed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from dari.proxy.engine.upstream import Route, UpstreamConnection

if TYPE_CHECKING:
    from dari.proxy.engine.http2.origin import OriginSession

_PER_ROUTE = 64
_TOTAL = 512
# A request that may not be sent twice gets a connection that was busy a moment ago, or a new one.
_FRESH_S = 2.0
_NOTED = 1024


class UpstreamPool:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._idle: dict[Route, list[UpstreamConnection]] = {}
        self._shared: dict[Route, list[OriginSession]] = {}
        self.multiplexed: set[Route] = set()
        """Routes whose origins refused to speak HTTP/1.1."""
        self.unshared: set[Route] = set()
        """Routes whose origins were offered HTTP/2 and did not take it."""
        self.dialing: dict[Route, asyncio.Future[None]] = {}
        """Routes to which a first connection is being made; done when it stands, or with why it does not."""
        self.size = 0

    def take(self, route: Route, is_replayable: bool) -> UpstreamConnection | None:
        waiting = self._idle.get(route)
        while waiting:
            upstream = waiting.pop()
            self.size -= 1
            if upstream.is_lost or upstream.transport.is_closing():
                continue
            if not is_replayable and self._clock() - upstream.idle_since > _FRESH_S:
                upstream.transport.close()
                continue
            upstream.is_reused = True
            return upstream
        if self._shared:
            for session in self._shared.get(route, ()):
                if session.has_room:
                    return session.stream()
        return None

    def share(self, session: OriginSession) -> None:
        """It serves many requests at a time, from now until it is no longer fit for new ones."""
        self._shared.setdefault(session.route, []).append(session)

    def note_multiplexed(self, route: Route) -> None:
        _note(self.multiplexed, route)

    def note_unshared(self, route: Route) -> None:
        _note(self.unshared, route)

    def unshare(self, session: OriginSession) -> None:
        sessions = self._shared.get(session.route, [])
        if session in sessions:
            sessions.remove(session)
            if not sessions:
                del self._shared[session.route]

    def put(self, upstream: UpstreamConnection) -> None:
        waiting = self._idle.setdefault(upstream.route, [])
        if len(waiting) >= _PER_ROUTE or self.size >= _TOTAL:
            upstream.transport.close()
            return
        upstream.idle_since = self._clock()
        waiting.append(upstream)
        self.size += 1

    def forget(self, upstream: UpstreamConnection) -> None:
        waiting = self._idle.get(upstream.route)
        if waiting and upstream in waiting:
            waiting.remove(upstream)
            self.size -= 1

    def sweep(self, idle_s: float) -> None:
        """Close what has waited too long, and forget routes without connections."""
        limit = self._clock() - idle_s
        for route, waiting in list(self._idle.items()):
            for upstream in [one for one in waiting if one.idle_since < limit]:
                waiting.remove(upstream)
                self.size -= 1
                upstream.transport.close()
            if not waiting:
                del self._idle[route]
        for session in [one for sessions in self._shared.values() for one in sessions]:
            if session.idle_since < limit:
                session.retire()

    def close(self) -> None:
        """Connections that are in use go on to the end of what they do."""
        self.sweep(float("-inf"))
        for session in [one for sessions in self._shared.values() for one in sessions]:
            session.retire()
        self.multiplexed.clear()
        self.unshared.clear()


def _note(routes: set[Route], route: Route) -> None:
    """Forgetting them costs one handshake each; remembering them all would cost memory for ever."""
    if len(routes) >= _NOTED:
        routes.clear()
    routes.add(route)
