"""Which of the recorded requests a command made.

Every process below the command inherits a variable of ours, so one that still lives can be asked. One that is gone is
taken for the command's unless it was there before. Without /proc, and for a connection whose process is not known, the
time decides.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dari.cli.proxy.flows import Flow

RUN_ID_VARIABLE = "DARI_PROXY_RUN"


class Attribution:
    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        """The value of `VARIABLE` in the command's environment."""
        self._before = _pids()
        self._verdicts: dict[int, bool] = {}

    def own(self, flows: Iterable[Flow]) -> list[Flow]:
        return [flow for flow in flows if self._is_own(flow.get("pid"))]

    def _is_own(self, pid: int | None) -> bool:
        if pid is None:
            return True
        if pid not in self._verdicts:
            self._verdicts[pid] = pid not in self._before and self._is_marked(pid)
        return self._verdicts[pid]

    def _is_marked(self, pid: int) -> bool:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return True  # gone, or not ours to read: a process of sudo
        # A process that ends has no environment any more.
        return not environment or f"{RUN_ID_VARIABLE}={self.mark}".encode() in environment.split(b"\0")


def _pids() -> frozenset[int]:
    try:
        return frozenset(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return frozenset()


_NOT_HTTP = frozenset({"ssh", "scp", "sftp", "ping", "dig", "nslookup", "host", "psql", "mysql", "redis-cli", "nc"})
_DAEMONS = {
    "docker": "the Docker daemon",
    "podman": "the Podman service",
    "kubectl": "the cluster",
    "bazel": "a server",
}
_GO_LOCALHOST = (
    "a Go program never uses a proxy for localhost and 127.0.0.1: call the server by this machine's name or LAN address"
)


def likely_reasons(words: Sequence[str], code: int, others: int) -> Iterator[str]:
    """`others`: requests of other processes during the run."""
    name = os.path.basename(words[0])
    if code != 0:
        yield f"the command ended with {code}, maybe before it asked for anything"
    if name in _NOT_HTTP:
        yield f"{name} does not speak HTTP, and only HTTP goes through the proxy"
    if name in _DAEMONS:
        yield f"{_DAEMONS[name]} makes the requests, in an environment of its own"
    if others:
        yield f"{others} requests of other processes went by: a server that ran before may do the work for the command"
    if name == "go" or is_go_program(words[0]):
        yield _GO_LOCALHOST
    yield "a program that ignores the variables HTTPS_PROXY and https_proxy connects directly; give it its proxy option"
    yield "a program may have had the answer in a cache"
    if name != "go" and not is_go_program(words[0]):
        yield _GO_LOCALHOST


def is_go_program(path: str) -> bool:
    """By the build information that the Go linker writes near the start of a program."""
    found = shutil.which(path)
    if found is None:
        return False
    try:
        with open(found, "rb") as file:
            return file.read(4) == b"\x7fELF" and b"\xff Go buildinf:" in file.read(8 * 1024 * 1024)
    except OSError:
        return False
