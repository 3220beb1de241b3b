"""A background `crab-mcp` of ours: one per run directory, found again by a record, ended by its pid.

A pid alone proves nothing, since the kernel gives numbers away again; together with the time at which the process was
born it names one process.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dari.daemon.lock import FileLock
from dari.daemon.spawn import DetachedProcess
from dari.errors import DariError, TimedOut, Unavailable
from dari.paths import log_hint, private_dir, write_private
from dari.proxy.daemon import CrabPaths

_START_TIMEOUT_S = 15.0
_END_TIMEOUT_S = 8.0
_POLL_S = 0.02
_ANNOUNCED = re.compile(r"crab-mcp listening on (\S+)\n(?:.*\n)*?crab-mcp token file (.+)\n")


class Record(msgspec.Struct, frozen=True):
    """Written when it serves."""

    pid: int
    birth: str
    url: str
    token_path: str
    log_path: str


class McpProcess:
    def __init__(self, place: CrabPaths) -> None:
        folder = private_dir(place.files.run_dir)
        self._path = folder / "crab-mcp.json"
        self._lock = FileLock(folder / "crab-mcp.lock")
        self._log_path = place.log_path.with_name("crab-mcp.log")

    def running(self) -> Record | None:
        """The server that still runs, if any."""
        try:
            record = msgspec.json.decode(self._path.read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return record if birth_of(record.pid) == record.birth else None

    async def start(self, command: Sequence[str]) -> tuple[Record, bool]:
        """The running server, and whether this call started it."""
        await self._take_turn()
        try:
            if (running := self.running()) is not None:
                return running, False
            return await self._start(command), True
        finally:
            self._lock.release()

    async def stop(self) -> Record | None:
        """End it and wait until it is gone; None when it did not run."""
        await self._take_turn()
        try:
            record = self.running()
            if record is not None:
                await _end(record)
            self._path.unlink(missing_ok=True)
            return record
        finally:
            self._lock.release()

    async def _take_turn(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._lock.try_acquire():
            if time.monotonic() > deadline:
                raise TimedOut("another command is starting or stopping the MCP server", f"see {self._lock.path}")
            await asyncio.sleep(_POLL_S)

    async def _start(self, command: Sequence[str]) -> Record:
        try:
            log_size = self._log_path.stat().st_size
        except FileNotFoundError:
            log_size = 0
        server = DetachedProcess(command, self._log_path)
        try:
            url, token_path = await self._announced(server, log_size)
            record = Record(server.pid, birth_of(server.pid) or "", url, token_path, str(self._log_path))
            write_private(self._path, msgspec.json.encode(record))
        except BaseException:
            server.end()
            raise
        server.reap()
        return record

    async def _announced(self, server: DetachedProcess, log_size: int) -> tuple[str, str]:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            if (found := _ANNOUNCED.search(self._said(log_size))) is not None:
                return found[1], found[2]
            failure: type[DariError] | None = None
            if (status := server.exit_status()) is not None:
                failure, said = Unavailable, f"crab-mcp ended at start with {status}"
            elif time.monotonic() > deadline:
                failure, said = TimedOut, "crab-mcp does not say that it listens"
            if failure is not None:
                raise failure(said, f"{self._log_path} ends with:\n{server.log_tail() or '(nothing)'}")
            await asyncio.sleep(_POLL_S)

    def _said(self, log_size: int) -> str:
        with self._log_path.open("rb") as log:
            if os.fstat(log.fileno()).st_size >= log_size:  # else a full log was moved away, and this one is new
                log.seek(log_size)
            return log.read().decode("utf-8", "replace")


async def _end(record: Record) -> None:
    deadline = time.monotonic() + _END_TIMEOUT_S
    number: signal.Signals | None = signal.SIGTERM
    while birth_of(record.pid) == record.birth:
        if time.monotonic() > deadline:
            raise TimedOut(f"crab-mcp (pid {record.pid}) is still there", log_hint(Path(record.log_path)))
        if number is not None:
            os.kill(record.pid, number)
            number = None
        await asyncio.sleep(_POLL_S)


def birth_of(pid: int) -> str | None:
    """When the process was born, as text to compare; None when it is gone."""
    if os.path.isdir("/proc/self"):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
        return None if fields[0] in ("Z", "X") else fields[19]
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip() or None
