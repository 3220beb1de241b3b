"""What this machine can enforce: probed once, by asking the kernel instead of comparing versions."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache

from dari.sandbox import landlock, network_broker, seccomp

_GET_SECCOMP = 21
_GET_ACTION_AVAIL = 2
_PROBE_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class SandboxCapabilities:
    system: str
    """linux, darwin or win32."""
    arch: str
    landlock_abi: int = 0
    has_seccomp: bool = False
    can_ask: bool = False
    """Whether a filter may ask us about a call, and we may reach the asker's sockets."""
    bubblewrap: str = ""
    """The path of a bubblewrap that works; why it does not is in `bubblewrap_note`."""
    bubblewrap_note: str = "not installed"
    sandbox_exec: str = ""


@cache
def probe_capabilities() -> SandboxCapabilities:
    if sys.platform == "linux":
        path, note = _probe_bubblewrap()
        has_seccomp = _has_seccomp()
        return SandboxCapabilities(
            "linux", platform.machine(), landlock.landlock_abi(), has_seccomp, has_seccomp and _can_ask(), path, note
        )
    if sys.platform == "darwin":
        return SandboxCapabilities("darwin", platform.machine(), sandbox_exec=shutil.which("sandbox-exec") or "")
    return SandboxCapabilities(sys.platform, platform.machine())


def _has_seccomp() -> bool:
    if not seccomp.is_known(platform.machine()):
        return False
    try:
        return int(ctypes.CDLL(None, use_errno=True).prctl(_GET_SECCOMP, 0, 0, 0, 0)) >= 0
    except (AttributeError, OSError):
        return False


def _can_ask() -> bool:
    """Linux 5.6 and later; not where ptrace is kept for administrators (Yama), for that bars `pidfd_getfd` too."""
    library = ctypes.CDLL(None, use_errno=True)
    wanted = ctypes.c_uint32(seccomp.ASK)
    number = seccomp.ARCHES[platform.machine()].seccomp
    if library.syscall(number, _GET_ACTION_AVAIL, 0, ctypes.byref(wanted)) != 0:
        return False
    library.syscall(network_broker.PIDFD_GETFD, -1, 0, 0)
    if ctypes.get_errno() == errno.ENOSYS:
        return False
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            return int(file.read()) < 2 or os.geteuid() == 0
    except (OSError, ValueError):
        return True


def _probe_bubblewrap() -> tuple[str, str]:
    """Installed is not enough: containers and some distributions forbid the namespaces it needs."""
    program = shutil.which("bwrap", path=f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/bin")
    if program is None:
        return "", "not installed"
    command = [program, "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true"]
    try:
        # A group of its own, so that its leftovers are not mistaken for other children.
        probe = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return "", f"installed, but does not run: {error}"
    try:
        _, said = probe.communicate(timeout=_PROBE_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        os.killpg(probe.pid, signal.SIGKILL)
        probe.communicate()
        return "", f"installed, but does not run: {error}"
    finally:
        _reap_group(probe.pid)
    if probe.returncode == 0:
        return program, ""
    return "", f"installed, but refused: {said.decode('utf-8', 'replace').strip()[:200]}"


def _reap_group(group: int) -> None:
    """The first process of bubblewrap's namespace ends after bubblewrap. We are a subreaper: it becomes our child, and
    a zombie that nobody waits for."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-group, os.WNOHANG)[0] == 0:
                time.sleep(0.002)
        except ChildProcessError:
            return  # none, or another's
