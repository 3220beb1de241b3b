"""What one process uses, from /proc, without its children."""

import os
from pathlib import Path

from bench.errors import BenchError

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def own_cpu_s(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:13])) / _TICKS_PER_S  # utime, stime


def user_cpu_s(pid: int) -> float:
    """Without the kernel's work for it."""
    return int(_stat(pid)[11]) / _TICKS_PER_S


def rss_mb(pid: int) -> float:
    return _kb(Path(f"/proc/{pid}/status"), "VmRSS:") / 1024


def peak_mb(pid: int) -> float:
    """The highest since its `clear_refs` was written."""
    return _kb(Path(f"/proc/{pid}/status"), "VmHWM:") / 1024


def pss_mb(pid: int) -> float:
    """Its own pages, and its share of those that several processes have."""
    return _kb(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") / 1024


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _kb(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise BenchError(f"{file} has no line {name}")
