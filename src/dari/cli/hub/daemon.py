"""The process that hosts the bridge: a daemon that the first command starts, or `dari up`.

One at a time. `host` is what both do: it holds the lock, the bridge, the command socket and the control socket.

A daemon ends by itself once it had no client, no running call and no live server for 30 minutes (DARI_BRIDGE_IDLE_S
changes that). One that `daemon start` started, or found running, stays until it is asked to end.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.cli.hub.paths import NAME, BridgePaths
from dari.daemon.lifetime import Lifetime, run_daemon
from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.paths import DaemonPaths
from dari.daemon.unix_socket import answers, socket_address
from dari.errors import Conflict, DariError, InvalidInput, Unavailable
from dari.paths import FileId, file_id, log_hint, private_dir

if TYPE_CHECKING:
    from dari.bridge.service import Bridge
    from dari.cli.hub.connection import MakeServer, RunCommand
    from dari.cli.hub.server import CliSocketServer
    from dari.daemon.peer import ConnectedSocket, PeerCredentials
    from dari.daemon.session import Refusal
    from dari.transport.token_service import TokenService

LOCK_TIMEOUT_S = 25.0
"""How long a new host waits for the one before: its commands get 5 s, its servers 7 s to end, and some."""
LOOK_S = 10.0
FLUSH_S = 1.0
HOSTS_S = 10.0
IDLE_VARIABLE = "DARI_BRIDGE_IDLE_S"
DEFAULT_IDLE_S = 30 * 60.0
UNUSED_S = 5 * 60.0
"""For a hub that nobody has used: the command that started it was killed, or has run without it."""

_log = logging.getLogger("dari.bridge")


class Hosted(Struct, eq=False):
    """A bridge with its sockets open. It should end when `lifetime` does."""

    bridge: Bridge
    cli_socket: CliSocketServer
    lifetime: Lifetime


@asynccontextmanager
async def host(
    place: BridgePaths,
    bridge: Bridge,
    run_command: RunCommand,
    make_server: MakeServer,
    *,
    lifetime: Lifetime | None = None,
    kind: Literal["daemon", "hub"] = "hub",
    is_own_child: Callable[[int | None], bool] | None = None,
    further_apis: Sequence[object] = (),
    tokens: TokenService | None = None,
) -> AsyncIterator[Hosted]:
    """Hold the lock, enter the bridge and open its sockets; leaving ends all of it, in the other order.

    A `hub` is not asked to end by commands (`daemon stop`, another release): it has more to do than this. `tokens` are
    those of its HTTP endpoint, where it has one at another place than usual.
    """
    from dari.cli.hub.handshake import is_own_child as usual
    from dari.cli.hub.server import CliSocketServer
    from dari.daemon.peer import peer_credentials
    from dari.daemon.person import is_own_daemon
    from dari.daemon.server import DaemonServer
    from dari.daemon.stub import exposed_methods
    from dari.transport.token_service import TokenService

    is_ours = is_own_child or usual
    lifetime = lifetime or Lifetime()

    def outsider(sock: ConnectedSocket) -> PeerCredentials:
        peer = peer_credentials(sock)
        if is_ours(peer.pid) and not (peer.pid is not None and is_own_daemon(peer.pid)):
            if bridge.audit is not None:
                bridge.audit.refuse("server", pid=peer.pid, reason="a server that the hub runs", what="connecting")
                bridge.audit.flush(FLUSH_S)
            raise PermissionError(f"process {peer.pid} belongs to a server that the bridge runs")
        return peer

    async with AsyncExitStack() as held:
        private_dir(place.run_dir)
        held.callback((await _take(place)).release)
        ours = file_id(place.lock)
        await held.enter_async_context(bridge)
        await held.enter_async_context(_taking_spools(bridge))
        control = DaemonServer(
            DaemonPaths(NAME, place.run_dir),
            [
                method
                for api in (
                    bridge.approval_service,
                    tokens or TokenService.of_home(lambda: bridge.audit),
                    *further_apis,
                )
                for method in exposed_methods(api)
            ],
            peer_credentials=outsider,
            on_refused=partial(_record_refusal, bridge),
            lifetime=lifetime,
        )
        cli_socket = CliSocketServer(
            place.run_dir,
            run_command,
            make_server,
            host=kind,
            lifetime=lifetime,
            is_own_child=is_ours,
        )
        if kind == "hub":
            held.callback(cli_socket.release_finishers)
        await held.enter_async_context(control)
        await held.enter_async_context(cli_socket)
        lifetime.is_busy = lambda: bool(cli_socket.connections or control.connections or bridge.is_active)
        if kind == "daemon":
            lifetime.ends_with(partial(_lock_lost, place, ours))
        _log.info("hub event=open socket=%s pid=%d", cli_socket.socket_path, os.getpid())
        yield Hosted(bridge, cli_socket, lifetime)


async def serve(
    place: BridgePaths, bridge: Bridge, run_command: RunCommand, make_server: MakeServer, *, stays: bool = False
) -> None:
    """The daemon: run until SIGTERM, SIGINT, `daemon stop`, `system.shutdown`, or until it is idle."""
    lifetime = Lifetime(read_idle_s(os.environ.get(IDLE_VARIABLE, "")), unused_s=UNUSED_S)
    lifetime.is_kept = stays
    await run_daemon(host(place, bridge, run_command, make_server, kind="daemon", lifetime=lifetime), lifetime)
    _log.info("bridge event=closed pid=%d", os.getpid())


def read_idle_s(text: str) -> float:
    """The seconds of DARI_BRIDGE_IDLE_S; half an hour when it is empty."""
    if not text:
        return DEFAULT_IDLE_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidInput(f"{IDLE_VARIABLE} must be seconds above 0, got {text[:40]!r}", "give a number such as 1800")
    return seconds


async def take_over(place: BridgePaths) -> bool:
    """Ask a daemon that runs here to end, and wait until it has; False when none ran.

    Conflict when the bridge is hosted by a hub, or by a daemon that does not end.
    """
    from dari.cli.hub.client import CliSocketRefused, ask_to_finish

    def ask() -> int | None:
        return ask_to_finish(place.run_dir_text, LOCK_TIMEOUT_S)

    socket_address(place.cli_socket)
    try:
        pid = await asyncio.to_thread(ask)
    except CliSocketRefused as refused:
        raise Conflict(refused.message, refused.hint) from None
    except TimeoutError:
        raise Conflict(f"the daemon (pid {lock_holder(place.lock)}) does not end", "end that process") from None
    except OSError as error:
        raise Unavailable(f"the daemon's socket does not answer: {error}", log_hint(place.log)) from None
    return pid is not None


async def _take(place: BridgePaths) -> FileLock:
    lock = FileLock(place.lock)
    # One that still listens is not on its way out.
    if not await lock.acquire(LOCK_TIMEOUT_S, give_up=lambda: answers(place.cli_socket_text)):
        pid = lock_holder(lock.path)
        raise Conflict(f"a bridge is already hosted in {place.run_dir} (pid {pid})", "end that process first")
    return lock


async def _lock_lost(place: BridgePaths, ours: FileId) -> None:
    """Return when our lock is not in its place any more: nobody can find us, and the next command starts another."""
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            if file_id(place.lock) != ours:
                return
        except OSError:
            return


@asynccontextmanager
async def _taking_spools(bridge: Bridge) -> AsyncIterator[None]:
    """Meanwhile, records of other processes go into the log: those that waited for us, and those that come."""
    from dari.core.audit.spool import INTERVAL_S, SPOOL_FOLDER, SpoolTakeover
    from dari.daemon.person import AGENT_HOSTS

    takeover = SpoolTakeover(bridge.home / SPOOL_FOLDER)
    looked_at_s = -HOSTS_S

    async def take() -> None:
        nonlocal looked_at_s
        now_s = asyncio.get_running_loop().time()
        try:
            # The log is opened here, not in the thread: two that open it at once would open two.
            if takeover.has_work() and (log := bridge.audit) is not None:
                await asyncio.to_thread(takeover.take, log)
                if now_s - looked_at_s >= HOSTS_S:  # calls of servers that are not clients of the hub
                    looked_at_s = now_s
                    await asyncio.to_thread(AGENT_HOSTS.look)
        except (DariError, OSError) as error:
            _log.warning("bridge event=spools_left: %s", error)

    async def go_on() -> None:
        while True:
            await take()
            await asyncio.sleep(INTERVAL_S)

    taking = asyncio.create_task(go_on())
    try:
        yield
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        await take()


def _record_refusal(bridge: Bridge, refusal: Refusal) -> None:
    if bridge.audit is not None:
        bridge.audit.refuse(refusal.principal, pid=refusal.pid, reason=refusal.reason, method=refusal.method)
        bridge.audit.flush(FLUSH_S)
