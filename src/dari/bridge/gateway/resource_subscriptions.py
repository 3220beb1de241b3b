"""URIs of other servers: whose they are, and who wants to hear of their updates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any

from dari.bridge.gateway.mounted_server import MountedServer
from dari.bridge.upstream.upstream import Upstream
from dari.core.registry import Registry
from dari.core.resource import Resource

Spawn = Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]


class ResourceSubscriptions:
    """Each URI that a client watches is watched at its server once, also after the server was replaced."""

    def __init__(self, registry: Registry, mounts: Callable[[], Mapping[str, MountedServer]], spawn: Spawn) -> None:
        self._registry = registry
        self._mounts = mounts
        self._spawn = spawn
        self._watched: dict[str, tuple[Upstream, str]] = {}

    def find(self, uri: str) -> Resource | None:
        """A reader for a URI that no list names."""
        mount = self._claimant(uri)
        return None if mount is None else mount.resource({"uri": uri}, uri)

    def watch(self, uri: str, wanted: bool) -> Awaitable[None] | None:
        if not wanted:
            self._let_go(uri)
            return None
        found = self._locate(uri)
        return None if found is None else self._take(uri, found)

    def refresh(self) -> None:
        """Servers were replaced: what clients watch is watched at the new ones."""
        for uri in self._registry.interests:
            found = self._locate(uri)
            if found == self._watched.get(uri):
                continue
            self._let_go(uri)
            if found is not None:
                self._take(uri, found)

    async def close(self) -> None:
        watched, self._watched = self._watched, {}
        for upstream, uri in watched.values():
            await upstream.unsubscribe(uri)

    def _take(self, uri: str, found: tuple[Upstream, str]) -> asyncio.Task[None]:
        self._watched[uri] = found
        return self._spawn(found[0].subscribe(found[1]))

    def _let_go(self, uri: str) -> None:
        found = self._watched.pop(uri, None)
        if found is not None:
            self._spawn(found[0].unsubscribe(found[1]))

    def _locate(self, uri: str) -> tuple[Upstream, str] | None:
        """The server of a URI as it is shown, and the URI as the server knows it; None: it is ours."""
        for mount in self._mounts().values():
            own = next((own for own, shown in mount.uris.items() if shown == uri), None)
            if own is not None:
                return mount.upstream, own
        if uri in self._registry.resources:
            return None
        claimant = self._claimant(uri)
        return None if claimant is None else (claimant.upstream, uri)

    def _claimant(self, uri: str) -> MountedServer | None:
        """Whose URI it may be, though no list names it. Where there is only one server, it is that one's."""
        mounts = list(self._mounts().values())
        claimed = next((mount for mount in mounts if mount.claims(uri)), None)
        return claimed or (mounts[0] if len(mounts) == 1 else None)


def make_unique_uris(id: str, uris: Iterable[str], taken: set[str]) -> dict[str, str]:
    """A URI stays with the first server that lists it; another one's is reached below `dari://<server>/`."""
    shown = {uri: uri if uri not in taken else f"dari://{id}/{uri}" for uri in dict.fromkeys(uris)}
    taken.update(shown.values())
    return shown
