"""Everything that is started here ends here, daemons that detach themselves included."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.bridge.usage import rss_mb
from bench.errors import BenchError
from bench.machine import clean_environment
from bench.proxy.usage import tree

END_TIMEOUT_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36
_OTHERS_SETTINGS = ("DARI_", "CREWX_", "MCP", "FASTMCP_", "XDG_", "NODE_", "VIRTUAL_ENV")


def environment(home: Path, programs: Path, **more: str) -> dict[str, str]:
    """A person's environment with a home of its own, in which nothing of the real one is found."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in clean_environment().items() if not name.startswith(_OTHERS_SETTINGS)}
    path = f"{programs}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return {**kept, "HOME": str(home), "PATH": path, **more}


@contextmanager
def household() -> Iterator[None]:
    """Orphans come to this process; what is left of them at the end is ended, each by its pid."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise BenchError(f"prctl: {os.strerror(ctypes.get_errno())}", "daemons of peers could not be ended")
    try:
        yield
    finally:
        end_strays()


def end_strays() -> None:
    """End all that descends from this process. To be called when no child is meant to run."""
    _tell(signal.SIGTERM)
    if not _are_gone(END_TIMEOUT_S):
        _tell(signal.SIGKILL)
        _are_gone(END_TIMEOUT_S)


@contextmanager
def visit() -> Iterator[None]:
    """What was started inside, and was told to stop inside, is gone when this ends: not merely deaf."""
    before = frozenset(_alive())
    yield
    if not _are_gone(END_TIMEOUT_S, but=before):
        left = ", ".join(map(str, set(_alive()) - before))
        raise BenchError(f"told to stop, but running {END_TIMEOUT_S:g} s later: {left}")


def adopted() -> int:
    """The daemon that detached itself and came to us: the biggest of our own children, when nothing else runs."""
    ours = [pid for pid in _alive() if _parent(pid) == os.getpid()]
    if not ours:
        raise BenchError("no daemon runs although it was started")
    return max(ours, key=rss_mb)


def _are_gone(within_s: float, but: frozenset[int] = frozenset()) -> bool:
    deadline = time.monotonic() + within_s
    while set(_alive()) - but:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _alive() -> list[int]:
    """Descendants that run; those that ended are reaped on the way."""
    running = []
    for pid in tree(os.getpid())[1:]:
        if _is_zombie(pid):
            with suppress(ChildProcessError):  # one of another process below us
                os.waitpid(pid, os.WNOHANG)
        else:
            running.append(pid)
    return running


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _tell(number: signal.Signals) -> None:
    for pid in _alive():
        with suppress(ProcessLookupError):
            os.kill(pid, number)
