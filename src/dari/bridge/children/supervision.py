"""When to start, restart, wait and give up: the states of one child. Pure: the time is an argument."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Literal

from msgspec import Struct


class ServerState(StrEnum):
    CONFIGURED = "configured"
    """Never started yet; the first use starts it."""
    STARTING = "starting"
    READY = "ready"
    IDLE = "idle"
    """Ended because it was idle, or by itself without a fault; the next use starts it."""
    BACKOFF = "backoff"
    """It failed, and is started again after a pause."""
    CRASH_LOOP = "crash-loop"
    """It failed too often; it is not started until the pause is over or it is reset."""
    QUARANTINED = "quarantined"
    """Held by a person or by a changed pin; only `release` lets it go."""
    STOPPED = "stopped"
    """Ended on purpose, or by a fault where the policy is never to restart."""


RestartPolicy = Literal["never", "on-failure", "always"]


class RestartLimits(Struct, frozen=True):
    policy: RestartPolicy = "on-failure"
    max_restarts: int = 3
    """Within `window_s`; one more is a crash loop."""
    window_s: float = 60.0
    backoff_s: float = 2.0
    """Before the first restart; doubles with each further one."""
    max_backoff_s: float = 60.0
    jitter: float = 0.25
    """Up to this share is taken off at random, so that ten servers do not start in the same moment."""
    crash_loop_s: float = 300.0
    """How long a crash loop is left alone."""


class Snapshot(Struct, frozen=True):
    state: ServerState
    restarts: int
    """All automatic ones, ever."""
    failures: int
    """In a row."""
    last_error: str
    retry_at: float | None
    """When it may be started again, on the clock of the caller."""


class Supervision:
    """One writer: the supervisor. `now` never goes back."""

    def __init__(self, restart: RestartLimits | None = None, chance: Callable[[], float] = random.random) -> None:
        self._restart = restart or RestartLimits()
        self._chance = chance
        self._state = ServerState.CONFIGURED
        self._recent: deque[float] = deque()
        self._restarts = 0
        self._failures = 0
        self._last_error = ""
        self._retry_at: float | None = None

    @property
    def state(self) -> ServerState:
        return self._state

    def snapshot(self) -> Snapshot:
        return Snapshot(self._state, self._restarts, self._failures, self._last_error, self._retry_at)

    def wait_s(self, now: float) -> float | None:
        """How long until it may be started: 0 for at once, None for not by itself."""
        if self._state in (ServerState.QUARANTINED, ServerState.STOPPED):
            return None
        if self._state in (ServerState.BACKOFF, ServerState.CRASH_LOOP) and self._retry_at is not None:
            return max(0.0, self._retry_at - now)
        return 0.0

    def starting(self, now: float) -> None:
        if self._state is ServerState.BACKOFF:
            self._restarts += 1
            self._recent.append(now)
        elif self._state is ServerState.CRASH_LOOP:
            # One attempt, on probation: a failure closes it again at once.
            self._recent.extend([now] * (self._restart.max_restarts - len(self._within(now))))
        self._retry_at = None
        self._state = ServerState.STARTING

    def ready(self, now: float) -> None:
        if self._state is ServerState.STARTING:
            self._state = ServerState.READY

    def failed(self, now: float, error: str) -> ServerState:
        """A start that came to nothing, or the end of a child that was ready, by a fault."""
        if self._state in (ServerState.QUARANTINED, ServerState.STOPPED):
            return self._state
        self._last_error = error
        self._failures = 1 if self._was_steady(now) else self._failures + 1
        if self._restart.policy == "never":
            self._state = ServerState.STOPPED
        elif len(self._within(now)) >= self._restart.max_restarts:
            self._state = ServerState.CRASH_LOOP
            self._retry_at = now + self._restart.crash_loop_s
        else:
            self._state = ServerState.BACKOFF
            self._retry_at = now + self._pause_s()
        return self._state

    def ended(self, now: float) -> ServerState:
        """A ready child ended by itself, without a fault."""
        if self._state in (ServerState.QUARANTINED, ServerState.STOPPED):
            return self._state
        if self._restart.policy == "always":
            return self.failed(now, "it ended with exit status 0")
        self._state = ServerState.STOPPED if self._restart.policy == "never" else ServerState.IDLE
        return self._state

    def idle(self) -> None:
        """Ended because it was idle."""
        if self._state is ServerState.READY:
            self._state = ServerState.IDLE

    def stop(self) -> None:
        if self._state is not ServerState.QUARANTINED:
            self._state, self._retry_at = ServerState.STOPPED, None

    def quarantine(self, reason: str) -> None:
        self._state, self._last_error, self._retry_at = ServerState.QUARANTINED, reason, None

    def reset(self) -> None:
        """Reset: end any pause, and forget past failures."""
        if self._state in (ServerState.STOPPED, ServerState.CRASH_LOOP, ServerState.BACKOFF, ServerState.QUARANTINED):
            self._state = ServerState.CONFIGURED
        self._recent.clear()
        self._failures, self._last_error, self._retry_at = 0, "", None

    def _within(self, now: float) -> deque[float]:
        while self._recent and self._recent[0] <= now - self._restart.window_s:
            self._recent.popleft()
        return self._recent

    def _was_steady(self, now: float) -> bool:
        """Whether all earlier trouble is older than the window."""
        return not self._within(now)

    def _pause_s(self) -> float:
        full = min(self._restart.max_backoff_s, self._restart.backoff_s * 2.0 ** (self._failures - 1))
        return full * (1.0 - self._restart.jitter * self._chance())
