"""Servers start in turns: as many at once as the machine has processors, and a call that waits goes first.

Twenty-eight interpreters that start in the same second on two processors are all slow, and half of them miss their
time limit. A turn ends when the server has answered or failed, or earlier when it uses neither processor nor disk:
one that hangs, or waits for a network, does not keep others from starting.
"""

from __future__ import annotations

import asyncio
import heapq
import os
from enum import IntEnum
from itertools import count
from typing import Self

MIN_AT_ONCE = 2
MAX_AT_ONCE = 8


class Priority(IntEnum):
    CALL = 0
    """A person or an agent waits for it."""
    LIST = 1
    """A client asked for its lists."""
    RETRY = 2
    """It did not answer the last time."""


class StartQueue:
    """`async with queue.turn(name)` around a start; its time limit counts from the entry."""

    def __init__(self, max_at_once: int | None = None) -> None:
        self.max_at_once = max_at_once or min(max(_processors(), MIN_AT_ONCE), MAX_AT_ONCE)
        self._waiting: list[tuple[Priority, int, StartTurn]] = []
        self._running: set[StartTurn] = set()
        self._numbers = count()

    @property
    def running(self) -> frozenset[str]:
        """The servers whose turn it is."""
        return frozenset(turn.name for turn in self._running)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The servers that wait for a turn, the next one first."""
        return tuple(turn.name for given, _, turn in sorted(self._waiting) if turn.is_waiting_with(given))

    def turn(self, name: str, priority: Priority = Priority.LIST) -> StartTurn:
        return StartTurn(self, name, priority)

    def _enqueue(self, turn: StartTurn) -> None:
        heapq.heappush(self._waiting, (turn.priority, next(self._numbers), turn))
        self._admit()

    def _leave(self, turn: StartTurn) -> None:
        self._running.discard(turn)
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            priority, _, turn = self._waiting[0]
            if not turn.is_waiting_with(priority):
                heapq.heappop(self._waiting)  # given up, or entered again with a better priority
                continue
            # One more than the limit: a call does not wait until the background starts of the moment are over.
            if len(self._running) >= self.max_at_once + (priority is Priority.CALL):
                return
            heapq.heappop(self._waiting)
            self._running.add(turn)
            turn.admit()


class StartTurn:
    """One start: it waits, has its turn, and gives it back once."""

    def __init__(self, queue: StartQueue, name: str, priority: Priority) -> None:
        self.name = name
        self.priority = priority
        self._queue = queue
        self._admitted: asyncio.Future[None] | None = None
        self._is_given_back = False

    @property
    def is_waiting(self) -> bool:
        return self._admitted is not None and not self._admitted.done()

    def is_waiting_with(self, priority: Priority) -> bool:
        """One that was hurried stands in the queue twice; its better place counts."""
        return self.is_waiting and priority == self.priority

    async def __aenter__(self) -> Self:
        self._admitted = asyncio.get_running_loop().create_future()
        self._queue._enqueue(self)
        try:
            await self._admitted
        except asyncio.CancelledError:
            self.give_back()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.give_back()

    def admit(self) -> None:
        """Called by the queue."""
        assert self._admitted is not None
        self._admitted.set_result(None)

    def hurry(self, priority: Priority) -> None:
        """A more important caller waits for it now."""
        if priority < self.priority:
            self.priority = priority
            if self.is_waiting:
                self._queue._enqueue(self)

    def give_back(self) -> None:
        """The next one may start. Safe to call twice."""
        if not self._is_given_back:
            self._is_given_back = True
            self._queue._leave(self)


def _processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
