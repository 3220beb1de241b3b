"""Topic `clients`: which agents have a session, and which have called; each event is the whole list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.console.client_activity import ClientState
from dari.console.live import TopicOptions

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

LOOK_S = 1.0
"""Sessions come and go without a word."""
PAUSE_S = 0.1


class ClientList(Struct, frozen=True):
    clients: list[ClientState]


async def follow_clients(backends: ConsoleBackends, argument: str, options: TopicOptions) -> AsyncIterator[ClientList]:
    activity = backends.activity
    last: list[ClientState] | None = None
    while True:
        changed = activity.changed
        clients = activity.clients()
        if clients != last:
            last = clients
            yield ClientList(clients)
            await asyncio.sleep(PAUSE_S)  # an agent may call a thousand times a second
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await changed.wait()
