"""Idle connections to origins, newest first: the newest is the least likely to have been closed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from dari.proxy.engine.upstream import Route, Upstream

_PER_ROUTE = 64
_TOTAL = 512
# A request that may not be sent twice gets a connection that was busy a moment ago, or a new one.
_FRESH_S = 2.0


class Pool:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._idle: dict[Route, list[Upstream]] = {}
        self.size = 0

    def take(self, route: Route, is_replayable: bool) -> Upstream | None:
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
        return None

    def put(self, upstream: Upstream) -> None:
        waiting = self._idle.setdefault(upstream.route, [])
        if len(waiting) >= _PER_ROUTE or self.size >= _TOTAL:
            upstream.transport.close()
            return
        upstream.idle_since = self._clock()
        waiting.append(upstream)
        self.size += 1

    def forget(self, upstream: Upstream) -> None:
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

    def close(self) -> None:
        self.sweep(float("-inf"))
