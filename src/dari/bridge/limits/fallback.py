"""Two addresses of one server: calls go to the first; while it cannot be reached, to the second.

After `recover_s` one call tries the first again, and the others follow it back when it works.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dari.bridge.limits.circuit import CircuitBreaker
from dari.core.rate_limit import Clock, LoopClock
from dari.errors import Unavailable

Result = TypeVar("Result")


def is_unreachable(error: BaseException) -> bool:
    """Nothing of the request can have been worked on, so that another address may get it."""
    return isinstance(error, (Unavailable, ConnectionRefusedError, socket.gaierror))


class FallbackAddresses:
    """`run(attempt)` calls `attempt(url)`; an attempt raises an error that `is_unreachable` says yes to only when the
    request was not sent, or may be sent twice."""

    def __init__(
        self,
        primary: str,
        fallback: str | None = None,
        *,
        recover_s: float = 60.0,
        clock: Clock | None = None,
        is_unreachable: Callable[[BaseException], bool] = is_unreachable,
        on_switch: Callable[[str], None] | None = None,
    ) -> None:
        self.primary = primary
        self.fallback = fallback
        self.current = primary
        """Where the last call that was answered went, or the first one will go."""
        self._circuit = CircuitBreaker(primary, clock or LoopClock(), failures=1, recover_s=recover_s)
        self._is_unreachable = is_unreachable
        self._on_switch = on_switch

    async def run(self, attempt: Callable[[str], Awaitable[Result]]) -> Result:
        if self.fallback is None:
            return await attempt(self.primary)
        if self._circuit.state == "open" or not self._may_try_primary():
            return await self._on_fallback(attempt, self.fallback)
        admitted = self._circuit.admit()
        try:
            result = await attempt(self.primary)
        except BaseException as error:
            if not isinstance(error, Exception):
                self._circuit.abandoned(admitted)
                raise
            if not self._is_unreachable(error):
                self._circuit.succeeded(admitted)  # it answered, with an error
                self._switch(self.primary)
                raise
            self._circuit.failed(admitted)
            return await self._on_fallback(attempt, self.fallback, first=error)
        self._circuit.succeeded(admitted)
        self._switch(self.primary)
        return result

    def _may_try_primary(self) -> bool:
        try:
            self._circuit.check()
        except Unavailable:
            return False  # another call is trying it
        return True

    async def _on_fallback(
        self, attempt: Callable[[str], Awaitable[Result]], url: str, first: Exception | None = None
    ) -> Result:
        try:
            result = await attempt(url)
        except Exception as error:
            if self._is_unreachable(error):
                if first is None:
                    return await self._last_resort(attempt, error)
                raise self._refusal(first, error) from error
            self._switch(url)
            raise
        self._switch(url)
        return result

    async def _last_resort(self, attempt: Callable[[str], Awaitable[Result]], second: Exception) -> Result:
        """The fallback is gone too: the first address is tried before its time."""
        try:
            result = await attempt(self.primary)
        except Exception as error:
            if self._is_unreachable(error):
                raise self._refusal(error, second) from error
            raise
        self._circuit.reset()
        self._switch(self.primary)
        return result

    def _refusal(self, first: Exception, second: Exception) -> Unavailable:
        return Unavailable(
            f"neither {self.primary} ({first}) nor its fallback {self.fallback} ({second}) can be reached",
            "check the network, or both addresses in the profile",
        )

    def _switch(self, url: str) -> None:
        if url != self.current:
            self.current = url
            if self._on_switch is not None:
                self._on_switch(url)
