"""A real cruxd for tests, started as clients start it, and what is left of it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dari.daemon.client import DaemonClient
from dari.terminal.daemon import cruxd_client
from dari.terminal.paths import CruxPaths
from dari.terminal.service import TerminalService, remote_service
from tests.support.waiting import until


@dataclass(frozen=True)
class Served:
    service: TerminalService
    ipc: DaemonClient
    place: CruxPaths
    pid: int

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


@asynccontextmanager
async def cruxd() -> AsyncIterator[Served]:
    """Whoever leaves the block has ended the daemon."""
    place = CruxPaths.of_environment()
    async with cruxd_client(place, "cli") as ipc:
        service = remote_service(ipc)
        pid = (await service.server.info()).pid
        try:
            yield Served(service, ipc, place, pid)
        finally:
            if is_running(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                await until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def below(pid: int) -> set[int]:
    """Living descendants of a process."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and is_running(int(path.name)):
            with suppress(OSError, IndexError):
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}
