"""Which process on this machine made a connection. Looked up on a thread, never on the hot path."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from dari.daemon.tcp_peer import Address, tcp_peer_owner
from dari.proxy.flow import Flow

# More would only make every answer late; a connection that finds the queue full goes without.
_WAITING = 64
_LATE_FLOWS = 100
_REMEMBERED = 16
"""Processes that are looked at first: one client opens many connections."""


class SocketPair(NamedTuple):
    peer: Address
    own: Address


class ClientProcess(NamedTuple):
    pid: int
    name: str


class ConnectionOwner:
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
    """Connections that arrive while others are looked up are looked up together after them."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "process-finder")
        self._waiting: list[tuple[SocketPair, ConnectionOwner]] = []
        self._is_looking = False
        self._is_closed = False
        self._holders = SocketHolders()

    def look(self, peer: Address, own: Address) -> ConnectionOwner:
        """The owner of the connection from `peer` to our `own` address."""
        owner = ConnectionOwner()
        if len(self._waiting) < _WAITING and not self._is_closed:
            self._waiting.append((SocketPair(peer, own), owner))
            if not self._is_looking:
                self._begin()
        return owner

    def close(self) -> None:
        """Those who still wait are not looked up any more."""
        self._is_closed = True
        self._waiting.clear()
        self._thread.shutdown(wait=False)

    def _begin(self) -> None:
        self._is_looking = True
        batch, self._waiting = self._waiting, []
        asked = [one for one, _ in batch]
        future = asyncio.get_running_loop().run_in_executor(self._thread, self._find, asked)
        future.add_done_callback(lambda done: self._done([owner for _, owner in batch], done))

    def _done(self, owners: list[ConnectionOwner], done: asyncio.Future[list[ClientProcess | None]]) -> None:
        self._is_looking = False
        if done.cancelled() or done.exception() is not None:
            return
        for owner, found in zip(owners, done.result(), strict=True):
            if found is not None:
                owner.found(*found)
        if self._waiting:
            self._begin()

    def _find(self, asked: list[SocketPair]) -> list[ClientProcess | None]:
        holders = [tcp_peer_owner(*one) for one in asked]
        links = [None if holder is None else f"socket:[{holder.inode}]" for holder in holders]
        found = self._holders.of({link for link in links if link is not None})
        return [None if link is None else found.get(link) for link in links]


class SocketHolders:
    """Which process has a socket open, from the links in /proc. Remembers where it found some lately."""

    def __init__(self) -> None:
        self._recent: OrderedDict[int, None] = OrderedDict()

    def of(self, links: set[str]) -> dict[str, ClientProcess]:
        found: dict[str, ClientProcess] = {}
        for pid in self._candidates():
            if len(found) == len(links):
                break
            self._look_into(pid, links, found)
        return found

    def _candidates(self) -> Iterator[int]:
        recent = list(reversed(self._recent))
        yield from recent
        # Newest first: a client that connects now has most often just been started.
        others = sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)
        yield from (pid for pid in others if pid not in recent)

    def _look_into(self, pid: int, links: set[str], found: dict[str, ClientProcess]) -> None:
        directory = f"/proc/{pid}/fd"
        try:
            numbers = os.listdir(directory)
        except OSError:  # another user's, or gone
            self._recent.pop(pid, None)
            return
        # The highest number first: it is the newest file.
        for number in reversed(numbers):
            try:
                link = os.readlink(f"{directory}/{number}")
                if link not in links or link in found:
                    continue
                found[link] = ClientProcess(pid, Path(f"/proc/{pid}/comm").read_text().strip())
            except OSError:  # closed since it was listed
                continue
            self._remember(pid)
            if len(found) == len(links):
                return

    def _remember(self, pid: int) -> None:
        self._recent[pid] = None
        self._recent.move_to_end(pid)
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
