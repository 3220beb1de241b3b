"""The reaper: a small process that outlives a killed daemon just long enough to end its children.

It blocks on a pipe from the daemon. Lines that arrive name what is alive: `watch <token> <brand>`,
`group <token> <pgid>`, `folder <token> <path>`, `forget <token>`. When the pipe ends, every process that is still
watched is killed and its temporary folder removed.
It runs as a script under `python -IS`, so this file imports nothing but the standard library's core.

A process belongs to a child when it carries the child's tag. The tag is written twice, since each half can
be lost on its own: a word in the environment (`env -i` clears it) and a brand, which is an otherwise unused
resource limit that fork and exec hand on (Linux has ignored RLIMIT_RSS since 2.4.30) and that only a process
with CAP_SYS_RESOURCE could raise again.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping

TAG_VARIABLE = "DARI_CHILD"
SWEEP_S = 10.0
_PAUSE_S = 0.005
_LIMIT = b"Max resident set"


def find_tagged(tags: Mapping[str, int]) -> list[int]:
    """The processes, zombies excluded, that carry one of these tags (token → brand). Linux only."""
    tokens = {token.encode() for token in tags}
    brands = {b"%d" % brand for brand in tags.values() if brand}
    if not tokens:
        return []
    own = os.getpid()
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if pid != own and _is_tagged(pid, tokens, brands)]


def kill_tagged(tags: Mapping[str, int]) -> list[int]:
    """Kill until none is left, or the time is up; returns those that are left."""
    deadline = time.monotonic() + SWEEP_S
    while True:
        left = find_tagged(tags)
        if not left or time.monotonic() > deadline:
            return left
        for pid in left:
            kill_if_tagged(pid, tags)
        time.sleep(_PAUSE_S)


def kill_if_tagged(pid: int, tags: Mapping[str, int]) -> None:
    """SIGKILL through a descriptor: between looking and killing, the number cannot become another process's."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        brands = {b"%d" % brand for brand in tags.values() if brand}
        if _is_tagged(pid, {token.encode() for token in tags}, brands):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def state_of(pid: int) -> str:
    """The kernel's letter for it; empty when it is gone."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].strip()[:1].decode()


def brand_of(pid: int) -> bytes:
    """The brand as the kernel prints it. A zombie still has it, when its environment is long gone."""
    for line in _read(f"/proc/{pid}/limits").splitlines():
        if line.startswith(_LIMIT):
            return line[len(_LIMIT) :].split()[-2]
    return b""


def _is_tagged(pid: int, tokens: set[bytes], brands: set[bytes]) -> bool:
    return (brand_of(pid) in brands or not tokens.isdisjoint(_tokens_of(pid))) and state_of(pid) not in ("", "Z", "X")


def _tokens_of(pid: int) -> Iterable[bytes]:
    wanted = TAG_VARIABLE.encode() + b"="
    for entry in _read(f"/proc/{pid}/environ").split(b"\0"):
        if entry.startswith(wanted):
            return entry[len(wanted) :].split(b":")
    return ()


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


class WatchList:
    """What the daemon has said is alive."""

    def __init__(self) -> None:
        self.tags: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.folders: dict[str, str] = {}

    def hear(self, line: str) -> None:
        match line.split(" ", 2):
            case ["watch", token, brand]:
                self.tags[token] = int(brand)
            case ["group", token, group]:
                self.groups[token] = int(group)
            case ["forget", token]:
                self.tags.pop(token, None)
                self.groups.pop(token, None)
                self.folders.pop(token, None)
            case ["folder", token, path]:
                self.folders[token] = path

    def end(self) -> None:
        if sys.platform == "linux":
            kill_tagged(self.tags)
        else:  # no /proc to find strays in: the groups are all there is
            for group in self.groups.values():
                try:
                    os.killpg(group, signal.SIGKILL)
                except OSError:
                    pass
        if self.folders:
            import shutil

            for path in self.folders.values():
                shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched = WatchList()
    rest = b""
    while heard := os.read(0, 65536):
        *lines, rest = (rest + heard).split(b"\n")
        for line in lines:
            watched.hear(line.decode("utf-8", "surrogateescape"))
    watched.end()


if __name__ == "__main__":
    main()
