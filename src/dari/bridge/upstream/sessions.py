"""The sessions of one server, by its isolation: one for all, one per client, or one per call; each supervised."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

from dari.bridge.children.downloads import MAX_DOWNLOAD_S, download_of
from dari.bridge.children.start_queue import StartQueue, StartTurn
from dari.bridge.children.supervision import RestartLimits, ServerState
from dari.bridge.children.supervisor import ServerSupervisor
from dari.bridge.config.profile import HttpSettings, Profile, StdioSettings
from dari.bridge.limits.fallback import FallbackAddresses
from dari.bridge.upstream.caller import Caller
from dari.bridge.upstream.connect import UpstreamSession
from dari.mcp.client.errors import NotSent


class UpstreamSupervisor(ServerSupervisor[UpstreamSession]):
    is_passing = False
    """It was made for one call."""


OpenAt = Callable[[str, float, StartTurn | None], Awaitable[UpstreamSession]]
"""Address, seconds, and the turn of a child."""
# A server that cannot be reached is tried by the next call; the circuit decides when to stop that.
_RESTART_AT_ONCE = RestartLimits(max_restarts=1_000_000_000, backoff_s=0.0, jitter=0.0)


class UpstreamSessions:
    """`url` is empty for a child process; a server with a fallback address has sessions at both."""

    def __init__(
        self,
        profile: Profile,
        open_at: OpenAt,
        queue: StartQueue,
        on_state: Callable[[UpstreamSupervisor], None] = lambda supervised: None,
    ) -> None:
        self._profile = profile
        self._on_state = on_state
        self._queue = queue
        self._open_at = open_at
        self._held: dict[tuple[str, str], UpstreamSupervisor] = {}
        self._passing: set[UpstreamSupervisor] = set()
        self._is_closed = False
        self.addresses: FallbackAddresses | None = None
        self._url = ""
        connection = profile.connection
        if isinstance(connection, HttpSettings):
            self._url = connection.url
            if connection.fallback_url is not None:
                recover_s = profile.circuit.recover_ms / 1000
                self.addresses = FallbackAddresses(
                    connection.url,
                    connection.fallback_url,
                    recover_s=recover_s,
                    is_unreachable=lambda error: isinstance(error, NotSent),
                )

    @property
    def url(self) -> str:
        """Where calls go now."""
        return self._url if self.addresses is None else self.addresses.current

    def of(self, caller: Caller, url: str | None = None) -> UpstreamSupervisor:
        """Whose session this caller uses. One per call has to be ended with it: see `finish`."""
        isolation = self._profile.isolation
        where = self._url if url is None else url
        if isolation == "per-call" or self._is_closed:
            supervised = self._make(where)
            supervised.is_passing = True
            self._passing.add(supervised)
            return supervised
        key = (where, caller.session if isolation == "per-client" else "")
        supervised_or_none = self._held.get(key)
        if supervised_or_none is None:
            supervised_or_none = self._held[key] = self._make(where)
        return supervised_or_none

    def made(self, caller: Caller) -> UpstreamSupervisor | None:
        """`of` where it is there already, at the only address there is."""
        isolation = self._profile.isolation
        if isolation == "per-call" or self._is_closed or self.addresses is not None:
            return None
        return self._held.get((self._url, caller.session if isolation == "per-client" else ""))

    @asynccontextmanager
    async def lease(self, caller: Caller) -> AsyncIterator[UpstreamSession]:
        """A session that is ready. One that was made only for this is ended with it."""
        supervised = self.of(caller)
        try:
            async with supervised.lease() as session:
                yield session
        finally:
            await self.finish(supervised)

    async def finish(self, supervised: UpstreamSupervisor) -> None:
        """The call is over: end what was only for it."""
        if supervised in self._passing:
            self._passing.discard(supervised)
            await supervised.stop()

    async def end_sessions(self, has_ended: Callable[[str], bool]) -> None:
        """Clients are gone, and their own sessions with them."""
        if self._profile.isolation != "per-client":
            return
        gone = [self._held.pop(key) for key in list(self._held) if key[1] and has_ended(key[1])]
        await asyncio.gather(*(one.stop() for one in gone))

    async def stop(self) -> None:
        """End them all; the next use starts anew."""
        await asyncio.gather(*(one.end() for one in self))

    async def close(self) -> None:
        """For good. A call that is still made, by who has not heard of it yet, gets a session that ends with it."""
        self._is_closed = True
        await self.stop()

    def __iter__(self) -> Iterator[UpstreamSupervisor]:
        return iter([*self._held.values(), *self._passing])

    def open_sessions(self) -> list[UpstreamSession]:
        return [one.session for one in self if one.session is not None]

    def main(self) -> UpstreamSupervisor | None:
        """The one that a status is about: the first that is ready, else any."""
        every = list(self)
        return next((one for one in every if one.state is ServerState.READY), every[0] if every else None)

    def _make(self, url: str) -> UpstreamSupervisor:
        profile = self._profile
        restart, start_s, queue = _RESTART_AT_ONCE, None, None
        if isinstance(profile.connection, StdioSettings):
            # To reach an address costs this machine next to nothing: only processes start in turns.
            queue = self._queue
            command = (profile.connection.command, *profile.connection.args)
            start_s = MAX_DOWNLOAD_S if download_of(command) is not None else None
            said = profile.connection.restart
            restart = RestartLimits(
                policy=said.policy,
                max_restarts=said.max_restarts,
                backoff_s=said.backoff_ms / 1000,
                window_s=said.window_ms / 1000,
            )
        supervised = UpstreamSupervisor(
            profile.id,
            lambda init_s: self._open_at(url, init_s, supervised.turn),
            restart,
            init_s=profile.init_timeout_ms / 1000,
            start_s=start_s,
            queue=queue,
            idle_exit_s=profile.idle_exit_ms / 1000,
            on_change=lambda state: self._on_state(supervised),
        )
        return supervised
