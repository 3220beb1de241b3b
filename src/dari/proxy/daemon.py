"""`crabd`: the proxy behind a Unix socket, and the client that finds it or starts it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dari.daemon.client import DaemonClient
from dari.daemon.launch import ensure_started
from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.paths import DaemonPaths
from dari.errors import Conflict
from dari.paths import home, private_dir, runtime_path
from dari.proxy.errors import PROXY_ERRORS
from dari.version import VERSION

NAME = "crabd"
_LOCK_TIMEOUT_S = 3.0


@dataclass(slots=True, frozen=True)
class CrabPaths:
    """Where one crabd lives. With a run directory of its own a daemon has a state of its own in it."""

    run_dir: Path | None = None
    socket: Path | None = None
    state_dir: Path | None = None

    @property
    def files(self) -> DaemonPaths:
        return DaemonPaths(NAME, self.run_dir.absolute() if self.run_dir is not None else runtime_path(NAME))

    @property
    def socket_path(self) -> Path:
        return self.socket.absolute() if self.socket is not None else self.files.socket

    @property
    def state_path(self) -> Path:
        if self.state_dir is not None:
            return self.state_dir.absolute()
        return self.run_dir.absolute() / "state" if self.run_dir is not None else home() / NAME

    @property
    def log_path(self) -> Path:
        return self.run_dir.absolute() / "crabd.log" if self.run_dir is not None else self.files.log

    def command(self, daemon_path: str | None = None) -> list[str]:
        """What starts it: the given program, else the crabd of this installation."""
        start = [daemon_path] if daemon_path else [sys.executable, "-m", "dari.cli.crabd"]
        options = (("--run-dir", self.run_dir), ("--socket", self.socket), ("--state-dir", self.state_dir))
        return [*start, "serve", *(part for name, path in options if path for part in (name, str(path.absolute())))]


async def serve(place: CrabPaths) -> None:
    """Run until `system.shutdown`, SIGTERM or SIGINT."""
    from dari.daemon.server import DaemonServer
    from dari.proxy.api.service import daemon_methods, local_service
    from dari.proxy.runtime import ProxyRuntime

    async with _held(place.state_path):
        machine = await ProxyRuntime.open(place.state_path)
        machine.local_files.keep_out_of(place.files.run_dir)
        try:
            service = local_service(machine, place.socket_path)
            daemon = DaemonServer(
                NAME,
                daemon_methods(service),
                run_dir=place.files.run_dir,
                socket_path=place.socket_path,
                version=VERSION,
                on_stop=machine.stop,
            )
            await daemon.serve()
        finally:
            await machine.close()


@asynccontextmanager
async def _held(state_path: Path) -> AsyncIterator[None]:
    """One daemon per state: two would write over each other's rules and count each other's flows."""
    lock = FileLock(private_dir(state_path) / "lock")
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while not lock.try_acquire():  # the one before may be on its way out
        if time.monotonic() > deadline:
            pid = lock_holder(lock.path)
            raise Conflict(f"crabd already uses {state_path} (pid {pid})", "stop it first, or name another --state-dir")
        await asyncio.sleep(0.02)
    try:
        yield
    finally:
        lock.release()


def crabd_client(
    place: CrabPaths,
    principal: str,
    *,
    token_path: Path | None = None,
    starts: bool = True,
    daemon_path: str | None = None,
    keep: bool = True,
) -> DaemonClient:
    """Calls to crabd; with `starts`, whoever calls first starts it."""
    files = place.files

    async def start() -> object:
        return await ensure_started(place.command(daemon_path), place.socket_path, files.start_lock, place.log_path)

    return DaemonClient(
        place.socket_path,
        token_path or files.token(principal),
        principal,
        keep=keep,
        start=start if starts else None,
        error_types=PROXY_ERRORS,
    )
