"""crabd, called from a shell by the wire names of its methods.

Plain values come back: the typed stand-in of `dari.proxy.api.service` loads the whole engine, which would double the
time that a command takes.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from dari.daemon.launch import ensure_started
from dari.daemon.lock import lock_holder
from dari.daemon.unix_socket import answers
from dari.errors import InvalidInput, TimedOut
from dari.paths import log_hint
from dari.proxy.daemon import CrabPaths, crabd_client

_END_TIMEOUT_S = 10.0
_POLL_S = 0.02


class Crab:
    """The daemon at a place; started when somebody calls it and it is not there, unless `starts` is False."""

    def __init__(self, place: CrabPaths, *, starts: bool = True) -> None:
        self.place = place
        self.started_pid: int | None = None
        """Its pid when this command started it."""
        self._starts = starts
        self._client = crabd_client(place, "cli", starts=False)

    async def call(self, method: str, patience_s: float | None = None, /, **params: object) -> dict[str, Any]:
        """The result of a method; a parameter that is None does not travel. `patience_s` gives a slow call its own
        connection."""
        if self._starts and not self.is_up():
            await self.start()
        given = {name: value for name, value in params.items() if value is not None}
        alone = patience_s is not None
        try:
            return await self._client.call(method, given, patience_s, returns=dict[str, Any], alone=alone)
        except UnicodeEncodeError as error:
            shown = error.object.encode("utf-8", "backslashreplace").decode()
            raise InvalidInput(f"the text must be UTF-8, got {shown!r}", "convert it, or rename the file") from error

    async def start(self) -> None:
        """Return once it answers."""
        place = self.place
        started = await ensure_started(place, place.command())
        self.started_pid = started or self.started_pid

    def is_up(self) -> bool:
        return answers(self.place.socket)

    @property
    def pid(self) -> int | None:
        return lock_holder(self.place.lock)

    async def shut_down(self) -> None:
        """End the daemon and wait until it is gone."""
        await self.call("system.shutdown")
        await self.close()
        deadline = time.monotonic() + _END_TIMEOUT_S
        # Its state is written last, after the socket and its lock are given up.
        while (pid := self.pid or lock_holder(self.place.state_lock)) is not None:
            if time.monotonic() > deadline:
                raise TimedOut(f"crabd (pid {pid}) is still there", log_hint(self.place.log))
            await asyncio.sleep(_POLL_S)

    async def close(self) -> None:
        await self._client.close()
