"""How much idle talk a peer may make: resets, pings, settings, empty frames (CVE-2023-44487, CVE-2019-9511 to 9518)."""

from __future__ import annotations

from collections.abc import Callable

_MOST = 1000.0
_PER_S = 200.0
# A request that is taken back has cost its whole way up.
RESET = 5.0
FRAME = 1.0


class Budget:
    """Fills with time and with every request that was served to its end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = _MOST
        self._at = clock()

    def spend(self, cost: float) -> bool:
        """False when it is used up."""
        now = self._clock()
        self._left = min(self._left + (now - self._at) * _PER_S, _MOST) - cost
        self._at = now
        return self._left >= 0

    def earn(self) -> None:
        self._left = min(self._left + RESET, _MOST)
