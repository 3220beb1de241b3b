"""Processes as the system shows them: who started whom, when, with which command line.

Linux reads /proc. Other systems ask `ps`, whose command lines lose the borders between words.
"""

from __future__ import annotations

import os
import sys

_MAX_DEPTH = 1000
"""More than a chain of parents has; one that changes while it is read must not be followed for ever."""
_STATE, _PARENT, _STARTED = 0, 1, 19
"""Fields of /proc/PID/stat after the name, which may hold anything."""


class Process:
    """One process at the moment it was read. `started` tells it from a later one with the same pid."""

    __slots__ = ("_argv", "is_ended", "parent", "pid", "started")

    def __init__(
        self, pid: int, parent: int, started: str, is_ended: bool = False, argv: tuple[str, ...] | None = None
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.started = started
        self.is_ended = is_ended
        """It is a zombie: it runs no more, and its parent has not asked for its exit status."""
        self._argv = argv

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line; empty for kernel threads and zombies. It is what the process says about itself."""
        if self._argv is None:
            line = read_proc(f"/proc/{self.pid}/cmdline").rstrip(b"\0").decode(errors="replace")
            self._argv = tuple(line.split("\0")) if line else ()
        return self._argv

    @property
    def program(self) -> str:
        return os.path.basename(self.argv[0]).lstrip("-") if self.argv else ""


def read_process(pid: int) -> Process | None:
    """The process with this pid; None when there is none."""
    if sys.platform != "linux":
        return _ps("-p", str(pid)).get(pid)
    fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) <= _STARTED:
        return None
    return Process(pid, int(fields[_PARENT]), fields[_STARTED].decode(), fields[_STATE] in (b"Z", b"X"))


def ancestors(pid: int) -> list[Process]:
    """The process, its parent and so on, up to the first process; empty when that cannot be said for sure.

    A process whose parent ends gets another one. So each link is read again after its parent was: a chain that changed
    under our hands is read anew, and one that keeps changing is refused.
    """
    for _ in range(3):
        chain = _read_chain(pid)
        if chain is not None:
            return chain
    return []


def is_descendant(pid: int, of: int) -> bool:
    """Whether the process is `of` or below it. True also where the chain cannot be read: the caller refuses then."""
    if pid == of:
        return True
    chain = ancestors(pid)
    return not chain or any(each.pid == of for each in chain)


def list_processes() -> dict[int, Process]:
    """Every process that we may see, by its pid."""
    if sys.platform != "linux":
        return _ps("-ax")
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {each.pid: each for each in found if each is not None}


def _read_chain(pid: int) -> list[Process] | None:
    """None when a link changed meanwhile; empty when a process of the chain has ended."""
    table = None if sys.platform == "linux" else _ps("-ax")
    chain: list[Process] = []
    while len(chain) < _MAX_DEPTH:
        found = read_process(pid) if table is None else table.get(pid)
        if found is None:
            return None if chain else []
        if chain and table is None:
            child = read_process(chain[-1].pid)
            if child is None or (child.parent, child.started) != (pid, chain[-1].started):
                return None
        chain.append(found)
        if found.parent == 0 or found.pid == 1:
            return chain
        pid = found.parent
    return []


def _ps(*which: str) -> dict[int, Process]:
    import subprocess

    columns = "pid=,ppid=,state=,lstart=,command="  # lstart has five words: Tue Nov 17 07:00:00 2026
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(["ps", *which, "-o", columns], capture_output=True, text=True, check=False, env=environment)
    found: dict[int, Process] = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) >= 8:
            pid, is_ended = int(words[0]), words[2].startswith("Z")
            found[pid] = Process(pid, int(words[1]), " ".join(words[3:8]), is_ended, tuple(words[8:]))
    return found


def read_proc(path: str) -> bytes:
    """Empty where the process is gone, or belongs to somebody else."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""
