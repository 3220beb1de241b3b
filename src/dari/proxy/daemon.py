"""`crabd`: the proxy behind a Unix socket, and the client that finds it or starts it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dari.daemon.client import DaemonClient
from dari.daemon.launch import python_command
from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.paths import DaemonPaths
from dari.errors import Conflict
from dari.paths import private_dir
from dari.proxy.errors import PROXY_ERRORS

if TYPE_CHECKING:
    from dari.daemon.paths import AnyPath

NAME = "crabd"
_LOCK_TIMEOUT_S = 3.0


class CrabPaths(DaemonPaths):
    def __init__(
        self, run_dir: AnyPath | None = None, socket: AnyPath | None = None, state_dir: AnyPath | None = None
    ) -> None:
        super().__init__(NAME, run_dir, socket=socket, state_dir=state_dir)

    @property
    def state_lock(self) -> Path:
        """One daemon per state: two would write over each other's rules and count each other's flows."""
        return self.state_dir / "lock"

    def command(self, daemon_path: str | None = None) -> list[str]:
        """What starts it: the given program, else the crabd of this installation."""
        words = ("serve", *self.arguments())
        return [daemon_path, *words] if daemon_path else python_command("dari.cli.crabd", *words)


async def serve(paths: CrabPaths) -> None:
    """Run until `system.shutdown`, SIGTERM or SIGINT."""
    from dari.core.approval_service import RefusalReporter
    from dari.core.hub_client import hub_approvals
    from dari.daemon.server import DaemonServer
    from dari.proxy.api.service import daemon_methods, local_service
    from dari.proxy.runtime import ProxyRuntime

    async with _hold_state(paths):
        proxy = await ProxyRuntime.open(paths.state_dir)
        proxy.local_files.keep_out_of(paths.run_dir)
        try:
            methods = daemon_methods(local_service(proxy, paths.socket))
            reporter = RefusalReporter(hub_approvals(), "crab")
            await DaemonServer(paths, methods, on_stop=proxy.stop, on_refused=reporter).serve()
        finally:
            await proxy.close()


@asynccontextmanager
async def _hold_state(paths: CrabPaths) -> AsyncIterator[None]:
    private_dir(paths.state_dir)
    lock = FileLock(paths.state_lock)
    if not await lock.acquire(_LOCK_TIMEOUT_S):  # the one before may be on its way out
        pid = lock_holder(lock.path)
        raise Conflict(
            f"crabd already uses {paths.state_dir} (pid {pid})", "stop it first, or name another --state-dir"
        )
    try:
        yield
    finally:
        lock.release()


def crabd_client(
    paths: CrabPaths,
    principal: str,
    *,
    token_path: Path | None = None,
    starts: bool = True,
    daemon_path: str | None = None,
    keep: bool = True,
) -> DaemonClient:
    """Calls to crabd; with `starts`, the first call starts it."""
    command = paths.command(daemon_path) if starts else None
    return DaemonClient(paths, principal, command=command, token_path=token_path, keep=keep, error_types=PROXY_ERRORS)
