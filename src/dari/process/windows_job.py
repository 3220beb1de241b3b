"""Windows: a job object holds a child and everything it starts, and ends them all when its last handle closes,
which the kernel does for a killed daemon too."""

from __future__ import annotations

import ctypes
import subprocess
from typing import Any, ClassVar

from dari.errors import Unavailable
from dari.process.tag import ProcessTag

CREATE_SUSPENDED, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW = 0x4, 0x200, 0x08000000
KILL_ON_JOB_CLOSE = 0x2000
EXTENDED_LIMITS = 9
ENDED_BY_US = 1
CTRL_BREAK = 1


class BasicLimits(ctypes.Structure):
    _fields_ = (
        ("per_process_user_time", ctypes.c_int64),
        ("per_job_user_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("minimum_working_set", ctypes.c_size_t),
        ("maximum_working_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority_class", ctypes.c_uint32),
        ("scheduling_class", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("basic", BasicLimits),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


class WindowsJob:
    """The process is made suspended, put into the job, and only then runs: it cannot start anything outside."""

    popen_options: ClassVar[dict[str, Any]] = {
        "creationflags": CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW
    }
    needs_reaper: ClassVar[bool] = False

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        tag: ProcessTag,
        *,
        is_wrapped: bool = False,
        kernel: Any = None,
        native: Any = None,
    ) -> None:
        libraries: Any = ctypes
        self._kernel = libraries.windll.kernel32 if kernel is None else kernel
        native = libraries.windll.ntdll if native is None else native
        self._popen = popen
        handle = int(getattr(popen, "_handle", 0))
        self._job = self._kernel.CreateJobObjectW(None, None)
        limits = ExtendedLimits(basic=BasicLimits(flags=KILL_ON_JOB_CLOSE))
        is_held = bool(self._job) and all(
            (
                self._kernel.SetInformationJobObject(
                    self._job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
                ),
                self._kernel.AssignProcessToJobObject(self._job, handle),
            )
        )
        if not is_held:
            popen.kill()
            self._close()
            raise Unavailable("Windows refuses a job object for the child", "is this process itself in a strict job?")
        native.NtResumeProcess(handle)

    def terminate(self) -> None:
        self._kernel.GenerateConsoleCtrlEvent(CTRL_BREAK, self._popen.pid)

    def kill(self) -> None:
        if self._job:
            self._kernel.TerminateJobObject(self._job, ENDED_BY_US)

    def clear(self) -> None:
        self.kill()
        self._close()

    def _close(self) -> None:
        job, self._job = self._job, 0
        if job:
            self._kernel.CloseHandle(job)
