"""Which process on this machine made a connection, from /proc. Looked up on a thread, never on the hot path."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dari.proxy.flow import Flow

# More would only make every answer late; a connection that finds the queue full goes without.
_WAITING = 64
_LATE_FLOWS = 100


class Owner:
    """The process behind one client connection; filled in a little after the connection was made."""

    __slots__ = ("_late", "name", "pid")

    def __init__(self) -> None:
        self.pid: int | None = None
        self.name: str | None = None
        self._late: list[Flow] = []

    def sign(self, flow: Flow) -> None:
        """Write it into the flow, now or when it is known."""
        if self.pid is not None:
            flow.pid, flow.process = self.pid, self.name
        elif len(self._late) < _LATE_FLOWS:
            self._late.append(flow)

    def found(self, pid: int, name: str) -> None:
        self.pid, self.name = pid, name
        late, self._late = self._late, []
        for flow in late:
            flow.pid, flow.process = pid, name


class ProcessFinder:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "process-finder")
        self._waiting = 0

    def look(self, peer_port: int, own_port: int) -> Owner:
        """The owner of the connection from `peer_port` to our `own_port`."""
        owner = Owner()
        if self._waiting < _WAITING:
            self._waiting += 1
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._thread, process_of, peer_port, own_port)
            future.add_done_callback(lambda done: self._done(owner, done))
        return owner

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _done(self, owner: Owner, done: asyncio.Future[tuple[int, str] | None]) -> None:
        self._waiting -= 1
        if not done.cancelled() and done.exception() is None and (found := done.result()) is not None:
            owner.found(*found)


def process_of(peer_port: int, own_port: int) -> tuple[int, str] | None:
    """(pid, name) of the process whose socket is bound to `peer_port` and connected to `own_port`."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        inode = _inode(Path(table), peer_port, own_port)
        if inode is not None:
            return _holder(f"socket:[{inode}]")
    return None


def _inode(table: Path, local_port: int, remote_port: int) -> str | None:
    local, remote = f":{local_port:04X}", f":{remote_port:04X}"
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        # An inode of 0 is a socket that nobody holds any more.
        if fields[1].endswith(local) and fields[2].endswith(remote) and fields[9] != "0":
            return fields[9]
    return None


def _holder(link: str) -> tuple[int, str] | None:
    # Newest first: a client that connects now has most often just been started.
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):
        directory = f"/proc/{pid}/fd"
        try:
            if any(os.readlink(f"{directory}/{number}") == link for number in os.listdir(directory)):
                return pid, Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue  # another user's, or gone
    return None
