"""Memory and processor time of processes with everything below them, from the system's tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from msgspec import Struct

_PARENT, _UTIME, _STIME, _CUTIME, _CSTIME, _RSS = 1, 11, 12, 13, 14, 21
"""Fields of /proc/PID/stat after the name, which may hold anything."""


class ProcessUsage(Struct, frozen=True, kw_only=True):
    """`memory_bytes` is what is resident; pages that processes share count in each."""

    pid: int
    processes: int
    memory_bytes: int
    cpu_s: float
    """Since each was started, with that of children which have ended."""


class _Row(Struct, frozen=True):
    parent: int
    memory_bytes: int
    cpu_s: float


def usage_of(pids: Iterable[int]) -> dict[int, ProcessUsage]:
    """Of each process with its children and theirs; what has ended is left out. Reads every process: for a thread."""
    table = _linux_table() if sys.platform == "linux" else _ps_table()
    children: dict[int, list[int]] = {}
    for pid, row in table.items():
        children.setdefault(row.parent, []).append(pid)
    asked = set(pids)
    found = {}
    for pid in asked & table.keys():
        below = _below(pid, children, asked - {pid})
        found[pid] = ProcessUsage(
            pid=pid,
            processes=len(below),
            memory_bytes=sum(table[one].memory_bytes for one in below),
            cpu_s=round(sum(table[one].cpu_s for one in below), 2),
        )
    return found


def _below(pid: int, children: dict[int, list[int]], others: set[int]) -> set[int]:
    """The process and all below it, without those that are asked for themselves."""
    found, left = {pid}, [pid]
    while left:
        for child in children.get(left.pop(), ()):
            if child not in found and child not in others:
                found.add(child)
                left.append(child)
    return found


def _linux_table() -> dict[int, _Row]:
    page_bytes, ticks = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                fields = file.readall().rpartition(b")")[2].split()
        except OSError:
            continue  # it has ended, or is somebody else's
        if len(fields) > _RSS:
            ticks_used = sum(int(fields[at]) for at in (_UTIME, _STIME, _CUTIME, _CSTIME))
            table[int(name)] = _Row(int(fields[_PARENT]), int(fields[_RSS]) * page_bytes, ticks_used / ticks)
    return table


def _ps_table() -> dict[int, _Row]:
    import subprocess

    command = ["ps", "-axo", "pid=,ppid=,rss=,time="]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    table = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) == 4:
            table[int(words[0])] = _Row(int(words[1]), int(words[2]) * 1024, _seconds(words[3]))
    return table


def _seconds(text: str) -> float:
    """`1-02:03:04`, `12:03.45`."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + (int(days) * 86_400 if days else 0)
