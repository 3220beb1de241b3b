"""When a daemon that nobody needs any more ends by itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from dari.errors import InvalidInput

VARIABLE = "DARI_BRIDGE_IDLE_S"
IDLE_S = 30 * 60.0
_LOOKS = 8
"""How often in that time somebody looks, so that it ends an eighth late at most."""


class Idleness:
    """`await idleness.long_enough()` returns when nothing was busy for `idle_s`; never while `stays` is set."""

    def __init__(self, is_busy: Callable[[], bool], idle_s: float) -> None:
        self.stays = False
        self._is_busy = is_busy
        self._idle_s = idle_s

    async def long_enough(self) -> None:
        loop = asyncio.get_running_loop()
        busy_at = loop.time()
        while True:
            await asyncio.sleep(self._idle_s / _LOOKS)
            if self._is_busy() or self.stays:
                busy_at = loop.time()
            elif loop.time() - busy_at >= self._idle_s:
                return


def idle_s(text: str | None = None) -> float:
    """What the environment says, else half an hour."""
    given = os.environ.get(VARIABLE, "") if text is None else text
    if not given:
        return IDLE_S
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidInput(f"{VARIABLE}={given[:40]!r} is no time", "give seconds above 0, such as 1800")
    return seconds
