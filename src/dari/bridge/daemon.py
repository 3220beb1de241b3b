"""The process that hosts the bridge: a daemon that whoever needs it first starts, or `dari up`.

One at a time. `host` is what both do: it holds the place, the bridge, the door and the control socket for a block.

A daemon ends by itself once it had no client, no running call and no live server for 30 minutes (DARI_BRIDGE_IDLE_S
changes that). One that `daemon start` started, or found running, stays until it is asked to end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from dari.bridge.paths import NAME, BridgePaths
from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.paths import DaemonPaths
from dari.daemon.unix_socket import answers, socket_address
from dari.errors import Conflict, Unavailable
from dari.paths import FileId, file_id, log_hint, private_dir

if TYPE_CHECKING:
    from dari.bridge.cli_socket.connection import MakeServer, RunCommand
    from dari.bridge.cli_socket.server import CliSocketServer
    from dari.bridge.idleness import Idleness
    from dari.bridge.service import Bridge
    from dari.daemon.client import DaemonClient
    from dari.daemon.peer import ConnectedSocket, PeerCredentials
    from dari.daemon.session import Refusal

PLACE_S = 25.0
"""How long a new host waits for the one before: its commands get 5 s, its servers 7 s to end, and some."""
LOOK_S = 10.0

_log = logging.getLogger("dari.bridge")


class Hosted(Struct, eq=False):
    """A bridge with its door open."""

    bridge: Bridge
    door: CliSocketServer
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _idleness: Idleness | None = None

    def finish(self) -> None:
        """Make `asked_to_finish` return."""
        self._asked.set()

    async def asked_to_finish(self) -> None:
        """Somebody asked for the end: at the door, over the control socket, or by not needing it for long."""
        await self._asked.wait()

    def stay(self) -> None:
        """Do not end for want of work."""
        if self._idleness is not None:
            self._idleness.stays = True


@asynccontextmanager
async def host(
    place: BridgePaths,
    bridge: Bridge,
    run_command: RunCommand,
    make_server: MakeServer,
    *,
    kind: Literal["daemon", "hub"] = "hub",
    idle_s: float | None = None,
    is_own_child: Callable[[int | None], bool] | None = None,
) -> AsyncIterator[Hosted]:
    """Hold the place, enter the bridge and open its door; leaving ends all of it, in the other order.

    A `hub` is not asked to end by commands (`daemon stop`, another release): it has more to do than this.
    """
    from dari.bridge.cli_socket.peer_check import is_own_child as usual
    from dari.bridge.cli_socket.server import CliSocketServer
    from dari.bridge.control import BridgeControl
    from dari.daemon.peer import peer_credentials
    from dari.daemon.server import DaemonServer
    from dari.daemon.stub import exposed_methods

    is_ours = is_own_child or usual

    def outsider(sock: ConnectedSocket) -> PeerCredentials:
        peer = peer_credentials(sock)
        if is_ours(peer.pid):
            raise PermissionError(f"process {peer.pid} belongs to a server that the bridge runs")
        return peer

    async with AsyncExitStack() as held:
        private_dir(place.run_dir)
        held.callback((await _take(place)).release)
        ours = file_id(place.lock)
        await held.enter_async_context(bridge)
        control = DaemonServer(
            DaemonPaths(NAME, place.run_dir),
            exposed_methods(BridgeControl(bridge)),
            peer_credentials=outsider,
            on_refused=partial(_record_refusal, bridge),
        )
        door = CliSocketServer(
            place.run_dir,
            run_command,
            make_server,
            host=kind,
            on_finish=lambda: hosted.finish(),
            on_stay=lambda: hosted.stay(),
            is_own_child=is_ours,
        )
        hosted = Hosted(bridge, door)
        if kind == "hub":
            held.callback(door.release_finishers)
        await held.enter_async_context(control)
        await held.enter_async_context(door)
        watching = [asyncio.create_task(_relay(control.asked_to_stop, hosted))]
        if kind == "daemon":
            watching.append(asyncio.create_task(_relay(lambda: _place_lost(place, ours), hosted)))
        if idle_s is not None:
            from dari.bridge.idleness import Idleness

            hosted._idleness = Idleness(lambda: bool(door.visits or control.connections or bridge.is_active), idle_s)
            watching.append(asyncio.create_task(_relay(hosted._idleness.long_enough, hosted)))
        held.push_async_callback(_end, watching)
        _log.info("bridge event=open door=%s pid=%d", door.socket_path, os.getpid())
        yield hosted


async def serve(
    place: BridgePaths, bridge: Bridge, run_command: RunCommand, make_server: MakeServer, *, stays: bool = False
) -> None:
    """The daemon: run until SIGTERM, SIGINT, `daemon stop`, `system.shutdown`, or nobody needs it."""
    from dari.bridge.idleness import idle_s

    limit_s = idle_s()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        async with host(place, bridge, run_command, make_server, kind="daemon", idle_s=limit_s) as hosted:
            if stays:
                hosted.stay()
            signalled = asyncio.create_task(stopped.wait())
            asked = asyncio.create_task(hosted.asked_to_finish())
            await asyncio.wait((signalled, asked), return_when=asyncio.FIRST_COMPLETED)
            await _end([signalled, asked])
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    _log.info("bridge event=closed pid=%d", os.getpid())


async def take_over(place: BridgePaths) -> bool:
    """Ask a daemon that runs here to end, and wait until it has; False when none ran.

    Conflict when the bridge is hosted by a hub, or by a daemon that does not end.
    """
    from dari.bridge.cli_socket.client import CliSocketRefused, ask_to_finish

    def ask() -> int | None:
        return ask_to_finish(place.run_dir_text, PLACE_S)

    socket_address(place.cli_socket)
    try:
        pid = await asyncio.to_thread(ask)
    except CliSocketRefused as refused:
        raise Conflict(refused.message, refused.hint) from None
    except TimeoutError:
        raise Conflict(f"the daemon (pid {lock_holder(place.lock)}) does not end", "end that process") from None
    except OSError as error:
        raise Unavailable(f"the daemon's door does not answer: {error}", log_hint(place.log)) from None
    return pid is not None


def control_client(place: BridgePaths, principal: str = "cli") -> DaemonClient:
    """Calls to the control socket of whoever hosts the bridge; nobody is started."""
    from dari.daemon.client import DaemonClient

    return DaemonClient(place, principal)


async def _take(place: BridgePaths) -> FileLock:
    lock = FileLock(place.lock)
    # One that still listens is not on its way out.
    if not await lock.acquire(PLACE_S, give_up=lambda: answers(place.cli_socket_text)):
        pid = lock_holder(lock.path)
        raise Conflict(f"a bridge is already hosted in {place.run_dir} (pid {pid})", "end that process first")
    return lock


async def _place_lost(place: BridgePaths, ours: FileId) -> None:
    """Return when our lock is not in its place any more: nobody can find us, and the next command starts another."""
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            if file_id(place.lock) != ours:
                return
        except OSError:
            return


def _record_refusal(bridge: Bridge, refusal: Refusal) -> None:
    if bridge.audit is not None:
        bridge.audit.refuse(refusal.principal, pid=refusal.pid, reason=refusal.reason, method=refusal.method)


async def _relay(asked: Callable[[], Awaitable[None]], hosted: Hosted) -> None:
    await asked()
    hosted.finish()


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
