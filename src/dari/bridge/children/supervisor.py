"""Keeps one server alive: starts it for its first user, restarts it, ends it when it is idle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from dari.bridge.children.start_queue import Priority, StartQueue, StartTurn
from dari.bridge.children.supervision import RestartLimits, ServerState, Snapshot, Supervision
from dari.errors import DariError, TimedOut, Unavailable
from dari.log import format_event

INIT_S = 10.0
IDLE_EXIT_S = 300.0
BACKSTOP_S = 2.0

_log = logging.getLogger("dari.bridge")


class SessionEnd(Struct, frozen=True):
    """How a session ended by itself."""

    error: DariError
    is_fault: bool


class SupervisedSession(Protocol):
    """What is kept alive: a child that has said hello."""

    @property
    def is_open(self) -> bool:
        """False as soon as it has ended."""

    async def ended(self) -> SessionEnd:
        """Wait until it ends by itself."""

    async def close(self) -> None:
        """End it."""


S = TypeVar("S", bound=SupervisedSession)


class ServerSupervisor(Generic[S]):
    """`async with supervisor.lease() as session` uses it; close the supervisor to end it."""

    def __init__(
        self,
        name: str,
        open_session: Callable[[float], Awaitable[S]],
        restart: RestartLimits | None = None,
        *,
        init_s: float = INIT_S,
        start_s: float | None = None,
        queue: StartQueue | None = None,
        idle_exit_s: float = IDLE_EXIT_S,
        on_change: Callable[[ServerState], None] | None = None,
        supervision: Supervision | None = None,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`open_session` starts the child and greets it, within the seconds it gets; an `idle_exit_s` of 0 keeps
        the child for ever. `start_s` is how long a start may take that downloads first; `queue` gives starts their
        turn, and every time counts from it."""
        self.name = name
        self._open = open_session
        self._init_s = init_s
        self._start_s = max(init_s, start_s or 0.0)
        self._queue = queue
        self.turn: StartTurn | None = None
        """Of the start that is under way."""
        self._idle_exit_s = idle_exit_s
        self._on_change = on_change
        self._supervision = supervision or Supervision(restart)
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._sleep = sleep
        self._session: S | None = None
        self._starting: asyncio.Task[S] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        self._error: DariError | None = None
        self._is_clearing = False
        self._ending = asyncio.Lock()
        self._leases = 0
        self._idle_since_s = 0.0

    @property
    def state(self) -> ServerState:
        return self._supervision.state

    @property
    def session(self) -> S | None:
        """The one that is ready, if any."""
        return self._session

    def snapshot(self) -> Snapshot:
        return self._supervision.snapshot()

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[S]:
        """A session that is ready; while it is held, idleness does not end it."""
        session = await self.acquire()
        try:
            yield session
        finally:
            self.release()

    async def acquire(self, priority: Priority = Priority.LIST) -> S:
        """`lease` for the hot path: every `acquire` that returns is followed by one `release`."""
        self._leases += 1
        session = self._session
        if session is not None and session.is_open:
            return session
        try:
            return await self.ensure(priority)
        except BaseException:
            self.release()
            raise

    def hold(self) -> None:
        """`acquire` by one who has just seen that the `session` is there and open."""
        self._leases += 1

    def release(self) -> None:
        self._leases -= 1
        if not self._leases and self._session is not None:
            self._rest()

    async def ensure(self, priority: Priority = Priority.LIST) -> S:
        """Start it if need be. All who ask at the same time share one start, and its error."""
        if self._ending.locked():
            async with self._ending:
                pass  # two processes of one server at a time may lock each other's files
        while self._session is not None:
            if self._session.is_open:
                return self._session
            await asyncio.sleep(0)  # it ended in this very moment; who watches it is about to take note
        wait_s = self._supervision.wait_s(self._clock())
        # A caller during a long pause gets the reason at once, and does not wait for its end.
        if wait_s is None or wait_s > self._init_s or (self.state is ServerState.CRASH_LOOP and wait_s > 0):
            raise self._refusal(wait_s)
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start(wait_s, priority))
        starting = self._starting
        if self.turn is not None:
            self.turn.hurry(priority)
        try:
            # A caller that gives up does not take the start away from the others.
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if not starting.cancelled() or (caller is not None and caller.cancelling()):
                raise
            raise Unavailable(f"{self.name} was stopped while it started", "start it again") from None

    async def end(self) -> None:
        """End it; the next use, also one that comes meanwhile, starts it again."""
        self._supervision.stop()
        self.reset()
        await self._end()

    async def stop(self) -> None:
        """End it, and do not start it again before `reset`."""
        self._supervision.stop()
        self._changed()
        await self._end()

    async def quarantine(self, reason: str) -> None:
        self._supervision.quarantine(reason)
        self._error = Unavailable(f"{self.name} is held: {reason}", "approve it first")
        self._changed()
        await self._end()

    def reset(self) -> None:
        """Let it be started again, whatever held it."""
        self._supervision.reset()
        self._error = None
        self._changed()

    async def _start(self, wait_s: float, priority: Priority = Priority.RETRY) -> S:
        try:
            if self._queue is not None:
                self.turn = self._queue.turn(self.name, priority)
            if wait_s > 0:
                await self._sleep(wait_s)
            if self.turn is None:
                session = await self._attempt()
            else:
                async with self.turn:
                    session = await self._attempt()
            self._supervision.ready(self._clock())
            self._error, self._session = None, session
            self._watching = asyncio.get_running_loop().create_task(self._watch(session))
            self._changed()
            if not self._leases:
                self._rest()
            return session
        finally:
            self._starting = self.turn = None

    async def _attempt(self) -> S:
        self._supervision.starting(self._clock())
        self._changed()
        try:
            # It knows better what to say about the delay than we do, so it gets the chance.
            async with asyncio.timeout(self._start_s + BACKSTOP_S):
                return await self._open(self._init_s)
        except TimeoutError:
            self._failed(TimedOut(f"{self.name} did not start within {self._start_s:g} s", "raise initTimeoutMs"))
        except DariError as error:
            self._failed(error)
        assert self._error is not None
        raise self._error

    def _failed(self, error: DariError) -> None:
        self._error = error
        state = self._supervision.failed(self._clock(), error.message)
        _log.warning(format_event("child", state, f"server={self.name} {error.message}"))
        self._changed()

    async def _watch(self, session: S) -> None:
        ending = await session.ended()
        self._session, self._is_clearing = None, True
        self._cancel_rest()
        if ending.is_fault:
            self._failed(ending.error)
        else:
            self._error = ending.error
            self._supervision.ended(self._clock())
            self._changed()
        await session.close()
        self._watching, self._is_clearing = None, False
        if self.state is ServerState.BACKOFF and self._starting is None:
            wait_s = self._supervision.wait_s(self._clock())
            self._starting = asyncio.get_running_loop().create_task(self._start(wait_s or 0.0))
            self._starting.add_done_callback(_retrieve_exception)

    def _rest(self) -> None:
        """Nobody uses it now. One task watches over all pauses: to start one after every call would cost more."""
        self._idle_since_s = self._clock()
        if self._idle_exit_s > 0 and self._resting is None:
            self._resting = asyncio.get_running_loop().create_task(self._exit_when_idle())

    def _cancel_rest(self) -> None:
        if self._resting is not None and self._resting is not asyncio.current_task():
            self._resting.cancel()
        self._resting = None

    async def _exit_when_idle(self) -> None:
        left_s = self._idle_exit_s
        while left_s > 0:
            await self._sleep(left_s)
            if self._session is None:
                return
            idle_s = 0.0 if self._leases else self._clock() - self._idle_since_s
            left_s = self._idle_exit_s - idle_s
        self._supervision.idle()
        self._changed()
        await self._end()

    async def _end(self) -> None:
        """Without a trace in the supervision: the caller has said why. Who comes second waits for the first."""
        async with self._ending:
            self._cancel_rest()
            session, self._session = self._session, None
            starting, self._starting = self._starting, None
            watching, self._watching = self._watching, None
            tasks = [task for task in (starting, watching) if task is not None]
            for task in tasks:
                if task is not watching or not self._is_clearing:
                    task.cancel()
            if session is not None:
                await session.close()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _refusal(self, wait_s: float | None) -> DariError:
        """Why it is not even tried, with the reason of the last failure."""
        last, state = self._error, self.state
        if state is ServerState.QUARANTINED and last is not None:
            return last
        when = "" if wait_s is None else f", next try in {wait_s:.0f} s"
        message = f"{self.name} is in state {state}{when}"
        retry = f"mend it, then try it at once: dari remote prewarm --server {self.name}"
        hints = [retry] if last is None else [last.message, last.hint, retry]
        return Unavailable(message, "\n".join(hint for hint in hints if hint))

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self.state)


def _retrieve_exception(task: asyncio.Task[S]) -> None:
    """The supervision already has the error of a restart that no caller waits for."""
    if not task.cancelled():
        task.exception()
