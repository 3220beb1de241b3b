"""Admission to a server: free slots and tokens first, then a bounded queue that is fair between clients.

A client that floods a server waits behind itself: the line is one queue per client, served in turn.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from dari.core.clock import Clock, Timer
from dari.core.rate_limit import TokenBucket
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
            raise InvalidInput(f"limits.concurrency is {concurrency}", "name 1 or more, or leave it out for no limit")
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
            # A caller that is cancelled and not told so yet must not use up a token.
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
