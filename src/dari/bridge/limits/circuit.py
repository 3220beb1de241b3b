"""Circuit breaker: stop calling a server that keeps failing, then try one call.

closed ── failures in a row ──▶ open ── recover_s ──▶ half-open ── the probe works ──▶ closed
                                 ▲                        │
                                 └──── the probe fails ◀──┘
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dari.core.rate_limit import Clock
from dari.errors import InvalidInput, Unavailable

CircuitState = Literal["closed", "open", "half-open"]
Pass = int
"""Which period of the circuit a call was let through in; what an older call reports says nothing about now."""


class CircuitBreaker:
    """`admit` before a call, then exactly one of `succeeded`, `failed` and `abandoned` with what it returned."""

    __slots__ = (
        "server",
        "failures",
        "recover_s",
        "on_change",
        "_clock",
        "_failed",
        "_opened_at",
        "_period",
        "_probe_at",
    )

    def __init__(
        self,
        server: str,
        clock: Clock,
        *,
        failures: int = 5,
        recover_s: float = 60.0,
        on_change: Callable[[CircuitState], None] | None = None,
    ) -> None:
        if failures < 1 or recover_s <= 0:
            raise InvalidInput(
                f"circuit.failures must be 1 or more and its time above 0 s, got {failures} and {recover_s:g} s",
                "correct the profile",
            )
        self.server = server
        self.failures = failures
        self.recover_s = recover_s
        self.on_change = on_change
        self._clock = clock
        self._failed = 0
        self._opened_at: float | None = None
        self._period = 0
        self._probe_at: float | None = None

    @property
    def state(self) -> CircuitState:
        if self._opened_at is None:
            return "closed"
        return "half-open" if self._probe_at is not None or self.retry_in_s <= 0 else "open"

    @property
    def retry_in_s(self) -> float:
        """Seconds until a probe is let through; 0 when it may be now."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self.recover_s - self._clock.time())

    def check(self) -> None:
        """Raise if a call would be refused now; takes nothing."""
        if self._opened_at is not None and (self._is_probing() or self.retry_in_s > 0):
            raise self.refusal()

    def admit(self) -> Pass:
        if self._opened_at is None:
            return self._period
        self.check()
        self._probe_at = self._clock.time()
        self._period += 1
        self._tell("half-open")
        return self._period

    def succeeded(self, admitted: Pass) -> None:
        if admitted != self._period:
            return
        self._failed = 0
        if self._opened_at is not None:
            self.reset()

    def failed(self, admitted: Pass) -> None:
        if admitted != self._period:
            return
        self._failed += 1
        if self._opened_at is not None or self._failed >= self.failures:
            self._opened_at = self._clock.time()
            self._probe_at = None
            self._period += 1
            self._tell("open")

    def abandoned(self, admitted: Pass) -> None:
        """The call ended without a word about the server, as when its caller left: another may probe at once."""
        if admitted == self._period and self._probe_at is not None:
            self._probe_at = None
            self._period += 1

    def reset(self) -> None:
        """Close it at once: the server is known to work."""
        self._failed = 0
        if self._opened_at is not None:
            self._opened_at = self._probe_at = None
            self._period += 1
            self._tell("closed")

    def refusal(self) -> Unavailable:
        """The error for a call that is refused now."""
        if self._is_probing():
            when = "one call is trying it right now"
        else:
            when = f"it is tried again in {self.retry_in_s:.0f} s"
        return Unavailable(
            f"{self.server} failed {self._failed} times in a row; {when}",
            f"wait, or look at the server with: dari remote test {self.server}",
        )

    def _is_probing(self) -> bool:
        """A probe that hangs must not block all callers: after the recovery time another one may try."""
        return self._probe_at is not None and self._clock.time() - self._probe_at < self.recover_s

    def _tell(self, state: CircuitState) -> None:
        if self.on_change is not None:
            self.on_change(state)
