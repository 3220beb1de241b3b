"""A relay that is loaded while its process already serves: what it needs takes longer to import than a handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from dari.bridge.gateway.selection import ServerSelection, is_any_named
from dari.core.context import LoggingMessage
from dari.core.events import ListKind
from dari.core.registry import Registry

if TYPE_CHECKING:
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.config.reload import ConfigWatcher
    from dari.bridge.gateway.relay import Relay

LOOK_S = 2.0
LOADING_S = 10.0
BRIEF_S = 0.8


class LateRelay:
    """Relays from the bridge's daemon as soon as the files of this place name a server, and starts nothing before."""

    def __init__(
        self,
        registry: Registry,
        choice: ServerSelection,
        *,
        around: ClientEnvironment | None = None,
        on_log: Callable[[LoggingMessage], None] | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        """`around`: where the files are looked for, and what the servers see; None: where this process stands."""
        self._registry = registry
        self._choice = choice
        self._around = around
        self._on_log = on_log
        self._look_s = look_s
        self._relay: Relay | None = None
        self._loaded = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_briefed = False
        registry.may_grow = True
        registry.settle = self._settle
        registry.brief = self._brief

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def expect_nothing(self) -> None:
        """No server is named anywhere: nothing waits for one. If that changes, clients are told of new lists."""
        self._registry.settle = self._registry.brief = None
        self._loaded.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._relay is not None:
            await self._relay.close()

    async def _run(self) -> None:
        watch = await asyncio.to_thread(self._look)
        if not is_any_named(watch.catalog, self._choice):
            self.expect_nothing()
            async for change in watch.changes(self._look_s):
                if is_any_named(change.catalog, self._choice):
                    break
        make = await asyncio.to_thread(self._load)
        self._relay = make()
        self._relay.start()
        self._loaded.set()

    def _look(self) -> ConfigWatcher:
        from dari.bridge.config.locations import ClientEnvironment
        from dari.bridge.config.reload import ConfigWatcher
        from dari.bridge.config.service import ConfigService

        self._around = self._around or ClientEnvironment.of_process()
        return ConfigWatcher(ConfigService(self._around))

    def _load(self) -> Callable[[], Relay]:
        from dari.bridge.gateway.door_channel import DoorChannel
        from dari.bridge.gateway.relay import Relay
        from dari.bridge.paths import BridgePaths

        around = self._around
        assert around is not None
        options = {"profile": self._choice.profile, "server": self._choice.server, "mode": "full", "labels": True}
        return lambda: Relay(
            self._registry,
            lambda starts: DoorChannel(BridgePaths(), options, around.environ, str(around.cwd), starts=starts),
            on_log=self._on_log,
        )

    def _brief(self) -> Coroutine[Any, Any, None] | None:
        return None if self._is_briefed else self._wait_briefly()

    async def _wait_briefly(self) -> None:
        """A daemon that runs answers in a moment; nobody waits for one that has to be started first."""
        try:
            async with asyncio.timeout(BRIEF_S):
                await self._loaded.wait()
                if self._relay is not None:
                    await self._relay.connected.wait()
        except TimeoutError:
            pass
        self._is_briefed = True

    def _settle(self, kind: ListKind) -> Coroutine[Any, Any, None] | None:
        return self._wait(kind)

    async def _wait(self, kind: ListKind) -> None:
        try:
            async with asyncio.timeout(LOADING_S):
                await self._loaded.wait()
        except TimeoutError:
            return
        settle = self._registry.settle
        waiting = None if settle is None or settle == self._settle else settle(kind)
        if waiting is not None:
            await waiting
