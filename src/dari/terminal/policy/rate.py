"""So many calls a second and client, so many at once: more is refused with the time to wait."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from dari.errors import Unavailable

RATE = 100.0
BURST = 400
"""An agent that waits for answers, with ten panes in parallel, stays far below; one that runs wild does not."""
_MOST_CLIENTS = 1024


class RateLimit:
    """A bucket of calls per client, filled by the clock. The clients heard of least recently are forgotten."""

    def __init__(self, rate: float = RATE, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        """Count one call; Unavailable when there were too many."""
        if wait_s := self.try_take(client):
            raise Unavailable(
                f"more than {self._rate:g} calls a second (burst {self._burst}) came from {client!r}",
                f"try again in {wait_s:.2f} s; calls_per_second and calls_at_once in crux.toml set the limit",
            )

    def try_take(self, client: str) -> float:
        """Count one call and return 0, or the seconds until the next would be taken."""
        now = self._clock()
        left, at = self._left.pop(client, (float(self._burst), now))
        left = min(float(self._burst), left + max(0.0, now - at) * self._rate)
        wait_s = 0.0
        if left >= 1:
            left -= 1
        else:
            wait_s = (1 - left) / self._rate
        self._left[client] = (left, now)
        while len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return wait_s
