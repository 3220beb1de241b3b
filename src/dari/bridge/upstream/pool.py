"""The upstreams of a process: two clients that resolve a profile to the same server share one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from dari.bridge.upstream.resolved import ResolvedServer
from dari.bridge.upstream.upstream import Upstream, UpstreamServices


class BridgeUpstreams:
    def __init__(self, parts: Callable[[], UpstreamServices]) -> None:
        """`parts` is asked when the first server is needed: a listing of profiles needs none of them."""
        self._parts = parts
        self._upstreams: dict[str, Upstream] = {}
        self._retiring: set[asyncio.Task[None]] = set()

    def get(self, target: ResolvedServer) -> Upstream:
        upstream = self._upstreams.get(target.key)
        if upstream is None:
            upstream = self._upstreams[target.key] = Upstream(target, self._parts())
        return upstream

    def __iter__(self) -> Iterator[Upstream]:
        return iter(list(self._upstreams.values()))

    def named(self, id: str) -> list[Upstream]:
        return [one for one in self if one.id == id]

    async def drop(self, upstream: Upstream) -> None:
        """Its profile is gone or has changed: end it, and make it anew if somebody asks again."""
        if self._upstreams.get(upstream.key) is upstream:
            del self._upstreams[upstream.key]
        await upstream.close()

    def retire(self, upstream: Upstream) -> None:
        """Its profile was changed or removed: give it to no new caller, and close it after its last call."""
        if self._upstreams.get(upstream.key) is upstream:
            del self._upstreams[upstream.key]
            task = asyncio.get_running_loop().create_task(upstream.close_when_idle())
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def close(self) -> None:
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        every, self._upstreams = list(self), {}
        await asyncio.gather(*(one.close() for one in every), return_exceptions=True)
