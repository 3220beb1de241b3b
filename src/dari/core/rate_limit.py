"""The one token bucket: calls per second of a server or a client, bytes per second of a slow link.

`Clock` is the time of every limit. An asyncio event loop is one; tests bring one whose time they set.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Protocol

from dari.errors import InvalidInput

MAX_CLIENTS = 4096
"""Beyond this, clients whose bucket is full again are forgotten: a full bucket says nothing."""


class TokenBucket:
    """`rate` tokens come in a second and at most `burst` are kept; it starts full. Refilled when asked, by no timer."""

    __slots__ = ("rate", "burst", "_at_s", "_tokens")

    def __init__(self, rate: float, burst: float, now_s: float = 0.0) -> None:
        if not (rate > 0 and math.isfinite(rate)):
            raise InvalidInput(f"a rate must be a number above 0, got {rate}", "leave it out for no limit")
        if not burst > 0:
            raise InvalidInput(f"a burst must be above 0, got {burst}", "a call needs one token")
        self.rate = rate
        self.burst = float(burst)
        self._at_s = now_s
        self._tokens = self.burst

    def take(self, now_s: float, amount: float = 1.0) -> float:
        """Take the tokens and return 0, or take nothing and return the seconds until there are enough."""
        tokens = self._refill(now_s)
        # A timer that fires at the very moment may see 0.9999999 of a token.
        if tokens >= amount - 1e-9:
            self._tokens = max(0.0, tokens - amount)
            return 0.0
        return (amount - tokens) / self.rate

    def overdraw(self, now_s: float, amount: float) -> float:
        """Take the tokens in any case and return the seconds until the debt is paid: takers are served in order."""
        self._tokens = self._refill(now_s) - amount
        return max(0.0, -self._tokens / self.rate)

    def give_back(self, amount: float) -> None:
        """Tokens that were taken and not used."""
        self._tokens = min(self.burst, self._tokens + amount)

    def is_full(self, now_s: float) -> bool:
        return self._refill(now_s) >= self.burst

    def _refill(self, now_s: float) -> float:
        if now_s > self._at_s:
            self._tokens = min(self.burst, self._tokens + (now_s - self._at_s) * self.rate)
            self._at_s = now_s
        return self._tokens


class ClientRateLimit:
    """A bucket per client, so that one client does not use up the rate of another."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        self._prune_at = MAX_CLIENTS

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str) -> float:
        """Count one call and return 0, or count nothing and return the seconds until the next is allowed."""
        now_s = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            if len(self._buckets) >= self._prune_at:
                self._buckets = {name: one for name, one in self._buckets.items() if not one.is_full(now_s)}
                self._prune_at = max(MAX_CLIENTS, 2 * len(self._buckets))
            bucket = self._buckets[client] = TokenBucket(self.rate, self.burst, now_s)
        return bucket.take(now_s)


class Timer(Protocol):
    def cancel(self) -> object: ...


class Clock(Protocol):
    def time(self) -> float:
        """Seconds that never go backwards."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> Timer: ...


class LoopClock:
    """The clock of whichever event loop runs at the moment of asking."""

    __slots__ = ()

    def time(self) -> float:
        return asyncio.get_running_loop().time()

    def call_at(self, when: float, callback: Callable[[], object], /) -> Timer:
        return asyncio.get_running_loop().call_at(when, callback)
