"""A plugin of pytest: a run fails when a process that one of its tests started is still there at its end.

The mark of a run is a resource limit that binds nobody: every process inherits it, whatever its environment, its
folder and its parent are. The tests that ran when it started are named, and the home that it serves: its starter may
be a daemon that outlived its own test. What is left is ended.
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

EXIT_CODE = 8
"""Above those of pytest: a failed test may be asked once more, a process that was left is no test's failure."""
PATIENCE_S = 5.0
MAX_COMMAND_CHARACTERS = 200
HOMES = ("DARI_HOME", "HOME", "XDG_RUNTIME_DIR")
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
    parent: str
    folder: str
    homes: str

    def describe(self) -> str:
        words = [
            f"{self.pid}  {self.command[-MAX_COMMAND_CHARACTERS:]}",
            f"    started by {' or '.join(self.tests()) or 'no test that ran then'}",
            f"    in {self.folder} with {self.homes or 'no home'}",
            f"    child of {self.parent}",
        ]
        return "\n".join(words) + "\n"

    def tests(self) -> list[str]:
        """Those that ran at its start: as many as there are workers."""
        first_s, last_s = self.started_s, self.started_s + _TICK_S
        return [name for name, (began_s, ended_s) in _spans.items() if began_s <= last_s and first_s <= ended_s]


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform == "linux" and not hasattr(config, "workerinput"):
        config.stash[_MARK] = _mark_run()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The times are the worker's own: its word of a test comes late on a busy machine."""
    booted_s = time.time() - _uptime()
    began_s, ended_s = _spans.get(report.nodeid, (math.inf, 0.0))
    _spans[report.nodeid] = min(began_s, report.start - booted_s), max(ended_s, report.stop - booted_s)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """After everything else: workers and the fixtures of the whole run have ended."""
    yield
    mark = session.config.stash.get(_MARK, None)
    left = [] if mark is None else _await_end(mark)
    if not left:
        return
    lines = [each.describe() for each in left]
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    assert isinstance(reporter, pytest.TerminalReporter)
    reporter.section("processes that tests left running", red=True)
    reporter.write("".join(lines))
    for each in left:
        with suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        session.exitstatus = EXIT_CODE


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
        command = _command(entry)
        if command and str(mark) in _read(entry / "limits").split():  # one that has ended has no words any more
            stat = _read(entry / "stat").rpartition(")")[2].split()
            if len(stat) > 19:
                parent = f"{stat[1]}  {_command(_PROC / stat[1])[-MAX_COMMAND_CHARACTERS:]}"
                started_s = int(stat[19]) * _TICK_S
                yield LeftProcess(int(entry.name), command, started_s, parent, _folder(entry), _homes(entry))


def _command(entry: Path) -> str:
    return _read(entry / "cmdline").replace("\0", " ").strip()


def _folder(entry: Path) -> str:
    try:
        return os.readlink(entry / "cwd")
    except OSError:
        return "an unknown folder"


def _homes(entry: Path) -> str:
    """Where it looks for its files. Nothing else of its environment is shown: there may be secrets."""
    variables = _read(entry / "environ").split("\0")
    return " ".join(each for each in variables if each.partition("=")[0] in HOMES)


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
