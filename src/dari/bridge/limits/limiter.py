"""The limits of one server, for every call to it: `async with limiter.call(client): …`.

The circuit refuses first, so that no call queues for a server that is down; rate and concurrency follow.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import TracebackType

from dari.bridge.limits.circuit import CircuitBreaker, CircuitState
from dari.bridge.limits.fair_queue import DEFAULT_QUEUE_WAIT_S, MAX_QUEUED_CALLS, FairQueue
from dari.core.clock import Clock, LoopClock
from dari.core.rate_limit import TokenBucket
from dari.errors import TimedOut, Unavailable


def is_server_failure(error: BaseException) -> bool:
    """It could not be reached or did not answer. An error that it answered with is a sign of health."""
    return isinstance(error, (Unavailable, TimedOut, OSError, EOFError, asyncio.TimeoutError))


class Limiter:
    """Make it inside a running event loop, or with a clock of your own. `failures=0` leaves the circuit out."""

    def __init__(
        self,
        server: str,
        *,
        rps: float | None = None,
        burst: int | None = None,
        concurrency: int | None = None,
        failures: int = 5,
        recover_s: float = 60.0,
        line_calls: int = MAX_QUEUED_CALLS,
        wait_s: float = DEFAULT_QUEUE_WAIT_S,
        clock: Clock | None = None,
        is_failure: Callable[[BaseException], bool] = is_server_failure,
        on_change: Callable[[CircuitState], None] | None = None,
    ) -> None:
        clock = clock or LoopClock()
        bucket = None if rps is None else TokenBucket(rps, _burst_of(rps, burst), clock.time())
        self.server = server
        self.queue = FairQueue(
            server, clock, bucket=bucket, concurrency=concurrency, line_calls=line_calls, wait_s=wait_s
        )
        self.circuit: CircuitBreaker | None = None
        self.is_failure = is_failure
        self._on_change = on_change
        if failures:
            self.circuit = CircuitBreaker(
                server, clock, failures=failures, recover_s=recover_s, on_change=self._circuit_changed
            )

    def call(self, client: str = "", wait_s: float | None = None) -> LimitedCall:
        """One call. Deadlines of the call go inside, or the circuit takes a time-out for a caller who left."""
        return LimitedCall(self, client, wait_s)

    def _circuit_changed(self, state: CircuitState) -> None:
        if state == "open" and self.circuit is not None and self.queue.waiting:
            self.queue.refuse_all(self.circuit.refusal())
        if self._on_change is not None:
            self._on_change(state)


class LimitedCall:
    """A turn at the server; leaving it tells the circuit how it went."""

    __slots__ = ("_limiter", "_client", "_wait_s", "_pass")

    def __init__(self, limiter: Limiter, client: str, wait_s: float | None) -> None:
        self._limiter = limiter
        self._client = client
        self._wait_s = wait_s
        self._pass = 0

    def enter_now(self) -> bool:
        """For the hot path: take the turn if it is free. End it with `leave`."""
        circuit, queue = self._limiter.circuit, self._limiter.queue
        if circuit is not None:
            circuit.check()
        if not queue.enter_now():
            return False
        self._admit()
        return True

    async def __aenter__(self) -> LimitedCall:
        if not self.enter_now():
            await self._limiter.queue.enter(self._client, self._wait_s)
            self._admit()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave(error)

    def leave(self, error: BaseException | None) -> None:
        circuit = self._limiter.circuit
        if circuit is not None:
            if error is None:
                circuit.succeeded(self._pass)
            elif self._limiter.is_failure(error):
                circuit.failed(self._pass)
            elif isinstance(error, Exception):
                circuit.succeeded(self._pass)
            else:
                circuit.abandoned(self._pass)
        self._limiter.queue.leave()

    def _admit(self) -> None:
        if self._limiter.circuit is not None:
            try:
                self._pass = self._limiter.circuit.admit()
            except Unavailable:
                self._limiter.queue.leave()
                raise


def _burst_of(rps: float, burst: int | None) -> int:
    """Without a burst, the calls of one second; 0 (refused by the bucket) for a rate that makes no sense."""
    if burst is not None:
        return burst
    return max(1, math.ceil(rps)) if math.isfinite(rps) else 0
