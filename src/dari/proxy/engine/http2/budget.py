"""How much idle talk a peer may make: resets, pings, settings, empty frames (CVE-2023-44487, CVE-2019-9511 to 9518)."""

from __future__ import annotations

from collections.abc import Callable

_MOST = 1000.0
_PER_S = 200.0
# A request that is taken back has cost its whole way up.
RESET = 5.0
FRAME = 1.0
MAX_WINDOW_CREDIT = 100_000.0
# Some clients give back each 4 KiB twice, to the stream and to the connection.
_WINDOW_PER_BYTE = 1 / 512


class Budget:
    """Fills with time and with every request that was served to its end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = _MOST
        self._windows = 0.0
        self._at = clock()

    def spend(self, cost: float) -> bool:
        """False when it is used up."""
        now = self._clock()
        self._left = min(self._left + (now - self._at) * _PER_S, _MOST) - cost
        self._at = now
        return self._left >= 0

    def earn(self) -> None:
        self._left = min(self._left + RESET, _MOST)

    def sent(self, size_bytes: int) -> None:
        """A body went out: the peer will open its windows again."""
        self._windows = min(self._windows + 2 + size_bytes * _WINDOW_PER_BYTE, MAX_WINDOW_CREDIT)

    def window_opened(self) -> bool:
        """One update for what was sent costs nothing, one for nothing is idle talk."""
        if self._windows >= 1:
            self._windows -= 1
            return True
        return self.spend(FRAME)
