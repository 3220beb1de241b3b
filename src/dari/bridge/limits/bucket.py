"""Token bucket: calls per second with a burst, refilled on use, without a timer."""

from __future__ import annotations

import math

from dari.core.clock import Clock
from dari.errors import InvalidInput


class TokenBucket:
    """`rps` tokens come in a second, `burst` of them are kept. A full bucket is what a new server starts with."""

    __slots__ = ("rps", "burst", "_clock", "_tokens", "_at")

    def __init__(self, rps: float, burst: int | None, clock: Clock) -> None:
        if not (rps > 0 and math.isfinite(rps)):
            raise InvalidInput(f"limits.rps is {rps}", "name a number above 0, or leave it out for no limit")
        burst = max(1, math.ceil(rps)) if burst is None else burst
        if burst < 1:
            raise InvalidInput(f"limits.burst is {burst}", "name 1 or more: a call needs one token")
        self.rps = rps
        self.burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._at = clock.time()

    def take(self) -> float:
        """Take a token and return 0, or take nothing and return the seconds until there is one."""
        now = self._clock.time()
        tokens = self._tokens + (now - self._at) * self.rps
        self._at = now
        if tokens > self.burst:
            tokens = float(self.burst)
        # A timer that fires at the very moment may see 0.9999999 of a token.
        if tokens >= 1 - 1e-9:
            self._tokens = max(0.0, tokens - 1)
            return 0.0
        self._tokens = tokens
        return (1 - tokens) / self.rps
