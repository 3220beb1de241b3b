"""A plugin of pytest: a run fails when a process that one of its tests started is still there at its end.

The mark of a run is a resource limit that binds nobody: every process inherits it, whatever its environment, its
folder and its parent are. The tests that ran when it started are named. What is left is ended.
"""

from __future__ import annotations

import math
import os
import resource
import secrets
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

PATIENCE_S = 5.0
LATE_S = 0.1  # by which a worker's word of a test may come late
_PROC = Path("/proc")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_MARK = pytest.StashKey[int]()
_spans: dict[str, tuple[float, float]] = {}
"""When each test began and ended, in seconds since the machine's start."""


@dataclass(frozen=True, slots=True)
class LeftProcess:
    pid: int
    command: str
    started_s: float

    def tests(self) -> list[str]:
        """Those that ran at its start: as many as there are workers."""
        return [name for name, (began_s, ended_s) in _spans.items() if began_s <= self.started_s + _TICK_S <= ended_s]


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform == "linux" and not hasattr(config, "workerinput"):
        config.stash[_MARK] = _mark_run()


def pytest_runtest_logstart(nodeid: str) -> None:
    _spans[nodeid] = _uptime() - LATE_S, math.inf


def pytest_runtest_logfinish(nodeid: str) -> None:
    _spans[nodeid] = _spans[nodeid][0], _uptime()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """After everything else: workers and the fixtures of the whole run have ended."""
    yield
    mark = session.config.stash.get(_MARK, None)
    left = [] if mark is None else _await_end(mark)
    if not left:
        return
    lines = [f"{each.pid}  {each.command[-200:]}\n    started by {' or '.join(each.tests())}\n" for each in left]
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    assert isinstance(reporter, pytest.TerminalReporter)
    reporter.section("processes that tests left running", red=True)
    reporter.write("".join(lines))
    for each in left:
        with suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _mark_run() -> int:
    """A limit of CPU time for real-time processes: nobody here is one, and 36,000 years are enough for them, too."""
    _, highest = resource.getrlimit(resource.RLIMIT_RTTIME)
    bound = 1 << 60 if highest == resource.RLIM_INFINITY else highest
    mark = bound - 1 - secrets.randbelow(1 << 48)
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))
    return mark


def find_left(mark: int) -> Iterator[LeftProcess]:
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        command = _read(entry / "cmdline").replace("\0", " ").strip()
        if command and str(mark) in _read(entry / "limits").split():  # one that has ended has no words any more
            ticks = _read(entry / "stat").rpartition(")")[2].split()[19:20]
            yield LeftProcess(int(entry.name), command, int(ticks[0]) * _TICK_S if ticks else 0.0)


def _uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else 0.0


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has just ended, or is another user's
        return ""


def _await_end(mark: int) -> list[LeftProcess]:
    """Those that do not end by themselves within a moment."""
    left: list[LeftProcess] = []

    def have_ended() -> bool:
        left[:] = find_left(mark)
        return not left

    with suppress(AssertionError):
        wait_until(have_ended, within_s=PATIENCE_S, interval_s=0.1)
    return left
