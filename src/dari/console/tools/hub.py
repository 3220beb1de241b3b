"""`dari_hub_*`: the hub itself, for a person."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends


class HubInfo(Struct):
    """What the page shows of the hub it talks to."""

    version: str
    pid: int
    url: str
    token_path: str
    started_unix: float


class ConsoleHubTools:
    """Tools named `dari_hub_<method>`."""

    prefix = "dari_hub"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends
        self._started_unix = time.time()

    @tool(scope=ADMIN, read_only=True)
    async def info(self) -> HubInfo:
        """Tell the hub's version, process, address and token file."""
        path = self._backends.settings.token_path
        return HubInfo(VERSION, os.getpid(), self._backends.url(), str(path or ""), self._started_unix)
