"""A child with all that it started: how the whole of it is asked to end, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any, ClassVar, Protocol

from dari.process.reaper_main import kill_tagged
from dari.process.tag import ProcessTag, children_of


class ProcessGroup(Protocol):
    """One per child. None of these raise when there is nobody left."""

    popen_options: ClassVar[dict[str, Any]]
    """What `Popen` needs, to start a process in a group of its own."""

    needs_reaper: ClassVar[bool]
    """Whether it could outlive us without one."""

    def __init__(self, popen: subprocess.Popen[bytes], tag: ProcessTag, *, is_wrapped: bool = False) -> None:
        """Right after the start."""

    def terminate(self) -> None:
        """Ask."""

    def kill(self) -> None:
        """End, at once. Called before the process is reaped: until then nobody else can have its group id."""

    def clear(self) -> None:
        """End those that left the group. Takes a moment; called in a thread, after the process has ended."""


def choose_group_type() -> type[ProcessGroup]:
    if sys.platform == "win32":
        from dari.process.windows_job import WindowsJob

        return WindowsJob
    return PosixGroup


class PosixGroup:
    """POSIX: a process group, and on Linux whatever bears the child's tag."""

    popen_options: ClassVar[dict[str, Any]] = {"start_new_session": True}
    needs_reaper: ClassVar[bool] = True

    def __init__(self, popen: subprocess.Popen[bytes], tag: ProcessTag, *, is_wrapped: bool = False) -> None:
        self._popen = popen
        self._tag = tag
        self._is_wrapped = is_wrapped
        tag.apply(popen.pid)

    def terminate(self) -> None:
        if not self._is_wrapped:
            self._signal(signal.SIGTERM)
            return
        # The end of bubblewrap would be the end of the server, before it could tidy up: its own two
        # processes are left out.
        first = {self._popen.pid, *children_of(self._popen.pid)}
        for pid in members_of(self._popen.pid) - first:
            try:
                os.kill(pid, signal.SIGTERM)
            except OSError:
                pass

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def clear(self) -> None:
        if os.path.isdir("/proc/self"):
            kill_tagged(self._tag.as_dict())

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.returncode is None:
            try:
                os.killpg(self._popen.pid, number)
            except (ProcessLookupError, PermissionError):
                pass


def members_of(group: int) -> set[int]:
    """The processes of a group; none where there is no /proc."""
    members: set[int] = set()
    names = os.listdir("/proc") if os.path.isdir("/proc/self") else ()
    for pid in (int(name) for name in names if name.isdigit()):
        try:
            if os.getpgid(pid) == group:
                members.add(pid)
        except OSError:
            continue
    return members
