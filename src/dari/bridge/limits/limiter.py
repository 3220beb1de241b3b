"""The limits of one server, for every call to it: `async with limiter.call(client): …`.

The circuit refuses first, so that no call queues for a server that is down; rate and concurrency follow. Calls that
have to wait are in one queue per client, served in turn: a client that floods a server delays only itself.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from types import TracebackType

from dari.bridge.limits.circuit import CircuitBreaker, CircuitState
from dari.core.rate_limit import Clock, LoopClock, Timer, TokenBucket
from dari.errors import DariError, InvalidInput, TimedOut, Unavailable

MAX_QUEUED_CALLS = 256
DEFAULT_QUEUE_WAIT_S = 30.0

_Waiter = asyncio.Future[None]


class FairQueue:
    """`enter` before a call, `leave` after it, also when it failed. None: unlimited."""

    def __init__(
        self,
        server: str,
        clock: Clock,
        *,
        bucket: TokenBucket | None = None,
        concurrency: int | None = None,
        line_calls: int = MAX_QUEUED_CALLS,
        wait_s: float = DEFAULT_QUEUE_WAIT_S,
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise InvalidInput(f"limits.concurrency must be 1 or more, got {concurrency}", "leave it out for no limit")
        self.server = server
        self.running = 0
        self._clock = clock
        self._bucket = bucket
        self._slots = concurrency
        self._line_calls = line_calls
        self._wait_s = wait_s
        self._line: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        self._waiting = 0
        self._refill: Timer | None = None

    @property
    def waiting(self) -> int:
        """Calls in the line."""
        return self._waiting

    def enter_now(self) -> bool:
        """Go through if nothing is in the way; the usual case, without an await."""
        if self._waiting or (self._slots is not None and self.running >= self._slots):
            return False
        if self._bucket is not None and self._bucket.take(self._clock.time()):
            return False
        self.running += 1
        return True

    async def enter(self, client: str = "", wait_s: float | None = None) -> None:
        """Wait for a turn, `wait_s` at most."""
        if self.enter_now():
            return
        if self._waiting >= self._line_calls:
            raise Unavailable(
                f"{self._waiting} calls wait for {self.server} already",
                "try again in a moment, or raise limits.concurrency and limits.rps of the server",
            )
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._line.setdefault(client, deque()).append(waiter)
        self._waiting += 1
        patience_s = self._wait_s if wait_s is None else wait_s
        deadline = self._clock.call_at(
            self._clock.time() + patience_s, lambda: self._give_up(client, waiter, patience_s)
        )
        self._admit()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.leave()  # the turn came in the same moment as the cancellation
            else:
                self._remove(client, waiter)
            raise
        finally:
            deadline.cancel()

    def leave(self) -> None:
        self.running -= 1
        if self._waiting:
            self._admit()

    def refuse_all(self, error: DariError) -> None:
        """Send the whole line away, as when the server is known to be down."""
        line, self._line, self._waiting = self._line, OrderedDict(), 0
        for queue in line.values():
            for waiter in queue:
                if not waiter.done():
                    waiter.set_exception(type(error)(error.message, error.hint))
        self._stop_refill()

    def _admit(self) -> None:
        """Let through whom slots and tokens allow, one of each client in turn."""
        self._stop_refill()
        while self._waiting and (self._slots is None or self.running < self._slots):
            client, queue = next(iter(self._line.items()))
            waiter = queue[0]
            # A caller whose cancellation is still on its way must not use up a token.
            wait_s = self._bucket.take(self._clock.time()) if self._bucket is not None and not waiter.done() else 0.0
            if wait_s:
                self._refill = self._clock.call_at(self._clock.time() + wait_s, self._admit)
                return
            queue.popleft()
            self._waiting -= 1
            if queue:
                self._line.move_to_end(client)
            else:
                del self._line[client]
            if not waiter.done():
                self.running += 1
                waiter.set_result(None)

    def _give_up(self, client: str, waiter: _Waiter, waited_s: float) -> None:
        if self._remove(client, waiter) and not waiter.done():
            waiter.set_exception(
                TimedOut(
                    f"{self.server} was busy for {waited_s:g} s: {self.running} calls run, {self._waiting} more wait",
                    "call again later, or raise limits.concurrency and limits.rps of the server",
                )
            )

    def _remove(self, client: str, waiter: _Waiter) -> bool:
        queue = self._line.get(client)
        if queue is None or waiter not in queue:
            return False
        queue.remove(waiter)
        self._waiting -= 1
        if not queue:
            del self._line[client]
        if not self._waiting:
            self._stop_refill()
        return True

    def _stop_refill(self) -> None:
        if self._refill is not None:
            self._refill.cancel()
            self._refill = None


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
        wait_s: float = DEFAULT_QUEUE_WAIT_S,
        clock: Clock | None = None,
        on_change: Callable[[CircuitState], None] | None = None,
    ) -> None:
        clock = clock or LoopClock()
        bucket = None if rps is None else TokenBucket(rps, _burst_of(rps, burst), clock.time())
        self.server = server
        self.queue = FairQueue(server, clock, bucket=bucket, concurrency=concurrency, wait_s=wait_s)
        self.circuit: CircuitBreaker | None = None
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
            elif is_server_failure(error):
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
