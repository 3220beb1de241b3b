"""What a proxy uses, from /proc: CPU seconds and memory of its process and all below it."""

import os
from pathlib import Path

from bench.errors import BenchError

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """The process and its descendants that are alive."""
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                left.extend(map(int, (task / "children").read_text().split()))
        except OSError:
            continue  # it ended meanwhile
    return found


def cpu_s(pid: int) -> float:
    """User and system time, with that of children that have ended and were waited for."""
    total = 0
    for one in tree(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return total / _TICKS_PER_S


def rss_mb(pid: int) -> float:
    return sum(_status_kb(one, "VmRSS:") for one in tree(pid)) / 1024


def peak_mb(pid: int) -> float:
    """The highest memory of each process since `forget_peak`, added up."""
    return sum(_status_kb(one, "VmHWM:") for one in tree(pid)) / 1024


def forget_peak(pid: int) -> None:
    for one in tree(pid):
        try:
            Path(f"/proc/{one}/clear_refs").write_text("5")
        except OSError as error:
            raise BenchError(f"/proc/{one}/clear_refs cannot be written: {error}", "run as the same user") from error


def _status_kb(pid: int, name: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
