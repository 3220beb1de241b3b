"""What only macOS and Windows have, with stand-ins for their kernels."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dari.errors import Unavailable
from dari.process import exit_watch, group, reaper_main
from dari.process.exit_watch import watch_exit
from dari.process.reaper import Reapers
from dari.process.tag import ProcessTag
from dari.process.windows_job import (
    CREATE_NEW_PROCESS_GROUP,
    CREATE_SUSPENDED,
    CTRL_BREAK,
    KILL_ON_JOB_CLOSE,
    WindowsJob,
)


class FakeWindows:
    """Remembers what it was asked to do, in order."""

    def __init__(self, refuses: str = "") -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._refuses = refuses

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            if name == "SetInformationJobObject":
                arguments = (*arguments[:2], arguments[2]._obj.basic.flags)
            self.calls.append((name, *arguments))
            return 0 if name == self._refuses else 77

        return call


class FakePopen:
    pid, _handle, returncode, was_killed = 5, 42, None, False

    def kill(self) -> None:
        self.was_killed = True


def job(kernel: FakeWindows, popen: Any = None) -> WindowsJob:
    return WindowsJob(popen or FakePopen(), ProcessTag.new(), kernel=kernel, native=kernel)


def test_a_windows_child_is_in_its_job_before_it_runs() -> None:
    windows = FakeWindows()
    job(windows)
    assert windows.calls == [
        ("CreateJobObjectW", None, None),
        ("SetInformationJobObject", 77, 9, KILL_ON_JOB_CLOSE),
        ("AssignProcessToJobObject", 77, 42),
        ("NtResumeProcess", 42),
    ]
    flags = WindowsJob.popen_options["creationflags"]
    assert flags & CREATE_SUSPENDED and flags & CREATE_NEW_PROCESS_GROUP


def test_a_windows_child_is_asked_by_break_and_ended_by_its_job() -> None:
    windows = FakeWindows()
    one = job(windows)
    windows.calls.clear()
    one.terminate()
    one.kill()
    one.clear()
    one.kill()
    assert windows.calls == [
        ("GenerateConsoleCtrlEvent", CTRL_BREAK, 5),
        ("TerminateJobObject", 77, 1),
        ("TerminateJobObject", 77, 1),
        ("CloseHandle", 77),
    ]


@pytest.mark.parametrize("step", ["CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"])
def test_without_its_job_a_windows_child_never_runs(step: str) -> None:
    windows, popen = FakeWindows(refuses=step), FakePopen()
    with pytest.raises(Unavailable, match="job object"):
        job(windows, popen)
    assert popen.was_killed
    assert "NtResumeProcess" not in [call[0] for call in windows.calls]


def test_the_family_fits_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert group.choose_group_type() is group.PosixGroup
    monkeypatch.setattr("sys.platform", "win32")
    assert group.choose_group_type() is WindowsJob


def test_a_job_needs_no_guardian_and_a_group_does() -> None:
    assert group.PosixGroup.needs_reaper and not WindowsJob.needs_reaper
    guard = Reapers(is_needed=False)
    guard.watch(ProcessTag.new())
    assert guard.pids == ()
    guard.close()


def test_on_macos_the_guardian_kills_the_groups_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(os, "killpg", lambda group, _: killed.append(group))
    watched = reaper_main.WatchList()
    for line in ("watch a 1", "group a 100", "watch b 2", "group b 200", "forget a", "nonsense"):
        watched.hear(line)
    watched.end()
    assert killed == [200]


def short_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["true"])


class FakeQueue:
    """A kqueue that fires when its process has ended, over a pipe."""

    def __init__(self, is_late: bool) -> None:
        self._reading, self._writing = os.pipe()
        self._is_late = is_late
        self.is_closed = False

    def control(self, events: list[Any], most: int) -> None:
        assert events[0].pid > 0
        if self._is_late:
            raise ProcessLookupError

    def fileno(self) -> int:
        return self._reading

    def fire(self) -> None:
        os.write(self._writing, b"x")

    def close(self) -> None:
        self.is_closed = True
        os.close(self._reading)
        os.close(self._writing)


@pytest.mark.parametrize("is_late", [False, True])
async def test_on_macos_the_end_comes_from_a_kqueue(monkeypatch: pytest.MonkeyPatch, is_late: bool) -> None:
    queue = FakeQueue(is_late)
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr(select, "kqueue", lambda: queue, raising=False)
    monkeypatch.setattr(select, "kevent", lambda pid, **_: SimpleNamespace(pid=pid), raising=False)
    for name in ("KQ_FILTER_PROC", "KQ_EV_ADD", "KQ_NOTE_EXIT"):
        monkeypatch.setattr(select, name, 1, raising=False)
    ended = asyncio.Event()
    with short_process() as process:
        watch_exit(process, ended.set)
        if not is_late:
            queue.fire()
        await ended.wait()
    assert queue.is_closed


@pytest.mark.parametrize("has_waitid", [True, False])
async def test_elsewhere_the_end_is_looked_for(monkeypatch: pytest.MonkeyPatch, has_waitid: bool) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    if not has_waitid:
        monkeypatch.delattr(os, "waitid")
    ended = asyncio.Event()
    with short_process() as process:
        watch_exit(process, ended.set)
        await ended.wait()


async def test_a_watch_that_is_stopped_calls_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr(exit_watch, "_POLL_S", 0)
    with short_process() as process:
        stop = watch_exit(process, lambda: pytest.fail("it was stopped"))
        stop()
        process.wait()
        for _ in range(5):
            await asyncio.sleep(0)
