"""The server itself: who it is, and its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from msgspec import Struct

from dari.daemon.stub import expose
from dari.terminal.api.commands import Success
from dari.terminal.multiplexer import Multiplexer
from dari.version import VERSION


class ServerInfo(Struct, frozen=True, kw_only=True):
    pid: int
    version: str
    socket: str
    panes: int
    clients: int = 0
    uptime_s: float = 0.0


def _nothing() -> None:
    pass


def _nobody() -> int:
    return 0


class ServerApi:
    def __init__(
        self, multiplexer: Multiplexer, shut_down: Callable[[], None] = _nothing, clients: Callable[[], int] = _nobody
    ) -> None:
        self._all = multiplexer
        self._shut_down = shut_down
        self._clients = clients
        self._began = time.monotonic()

    @expose("crux:server/info", "read")
    async def info(self) -> ServerInfo:
        return ServerInfo(
            pid=os.getpid(),
            version=VERSION,
            socket=str(self._all.socket_path or ""),
            panes=self._all.live_panes,
            clients=self._clients(),
            uptime_s=round(time.monotonic() - self._began, 3),
        )

    @expose("crux:server/adopt-environment", "admin")
    async def adopt_environment(self, variables: dict[str, str]) -> Success:
        """Panes opened from now on have the environment of the person who started the daemon, as with tmux."""
        self._all.adopt_environment(variables)
        return Success()

    @expose("crux:server/kill", "admin")
    async def kill(self) -> Success:
        """End every pane, then the daemon."""
        self._all.check_end(self._all.panes.values())
        self._shut_down()
        return Success()
