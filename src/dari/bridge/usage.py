"""Memory and processor time of child servers, with what they started: a short history, read from /proc when asked."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.process.tag import children_of

if TYPE_CHECKING:
    from dari.process.child import Child

MAX_SAMPLES = 60
MIN_INTERVAL_S = 0.9
MAX_PROCESSES = 200
"""Of one server: one that forks without end must not make us read /proc without end."""


class UsageSample(Struct, frozen=True):
    at: float
    cpu_percent: float
    """Of one processor, since the sample before."""
    memory_bytes: int
    """Resident, of all its processes; pages that they share count for each."""
    processes: int


class ServerUsage:
    """Nothing is read between calls of `sample`; who asks twice within a second gets the same samples."""

    def __init__(self, children: Callable[[], Iterable[Child]], clock: Callable[[], float] = time.time) -> None:
        self._children = children
        self._clock = clock
        self._last_s = 0.0
        self._ticks: dict[int, tuple[float, int]] = {}
        self._history: dict[str, deque[UsageSample]] = {}

    def sample(self) -> dict[str, UsageSample]:
        """The newest sample of each server that runs, by its name."""
        now = self._clock()
        if now - self._last_s >= MIN_INTERVAL_S:
            self._last_s = now
            self._take(now)
        return {name: history[-1] for name, history in self._history.items()}

    def history(self, name: str) -> list[UsageSample]:
        """Oldest first; empty for a server that does not run."""
        return list(self._history.get(name, ()))

    def _take(self, now: float) -> None:
        by_name: dict[str, list[int]] = {}
        for child in self._children():
            by_name.setdefault(child.spec.name, []).extend(_tree(child.pid))
        ticks: dict[int, tuple[float, int]] = {}
        for name, pids in by_name.items():
            cpu = memory = 0.0
            alive = 0
            for pid in pids:
                found = _read(pid)
                if found is None:
                    continue
                alive += 1
                memory += found[1]
                ticks[pid] = (now, found[0])
                before = self._ticks.get(pid)
                if before is not None and now > before[0]:
                    cpu += max(0, found[0] - before[1]) / _TICKS_PER_S / (now - before[0]) * 100
            if alive:
                sample = UsageSample(round(now, 3), round(cpu, 1), int(memory), alive)
                self._history.setdefault(name, deque(maxlen=MAX_SAMPLES)).append(sample)
        self._ticks = ticks
        self._history = {name: kept for name, kept in self._history.items() if name in by_name}


_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _tree(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        if len(found) >= MAX_PROCESSES:
            break
        found += [child for child in children_of(each) if child not in found]
    return found[:MAX_PROCESSES]


def _read(pid: int) -> tuple[int, int] | None:
    """Ticks of processor time, bytes of memory; None when it is gone, or there is no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12]), int(fields[21]) * _PAGE_BYTES
