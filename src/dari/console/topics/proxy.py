"""Topic `proxy`: the proxy's state, settings and CA, whenever one of them changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from dari.console.live import TopicOptions
from dari.proxy.api.ca import CaStatus
from dari.proxy.api.control import ProxyInfo
from dari.proxy.api.settings import ConfigDump

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

LOOK_S = 2.0


class ProxyPageState(Struct, frozen=True):
    info: ProxyInfo
    config: ConfigDump
    ca: CaStatus


async def follow_proxy(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[ProxyPageState]:
    proxy = backends.proxy(False)
    last: ProxyPageState | None = None
    while True:
        info = await proxy.control.info()
        # They move with every request, and the settings are not about them.
        still = msgspec.structs.replace(info, connections=0, requests_recorded=0)
        state = ProxyPageState(still, await proxy.settings.dump(), await proxy.ca.status())
        if state != last:
            last = state
            yield ProxyPageState(info, state.config, state.ca)
        await asyncio.sleep(LOOK_S)
