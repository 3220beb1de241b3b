"""The hub's Unix socket: commands and MCP clients of one person connect to it.

`dari.cli.hub.protocol` tells the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dari.cli.hub import protocol
from dari.cli.hub.connection import CliConnection, MakeServer, RunCommand
from dari.cli.hub.handshake import CliHandshake, is_own_child
from dari.daemon.lifetime import Lifetime
from dari.daemon.listener import Listener
from dari.daemon.peer import ConnectedSocket, PeerCredentials, peer_credentials
from dari.errors import Conflict, Denied, Unavailable
from dari.paths import FileId, private_dir, remove_own, write_private
from dari.rpc.codec import encode
from dari.version import VERSION

if TYPE_CHECKING:
    from dari.cli.hub.http_attachment import HttpAttachment

MAX_CONNECTIONS = 512
COMMAND_GRACE_S = 5.0
"""What running commands get when the host is asked to end."""
CANCEL_GRACE_S = 5.0
"""What cancelled ones get to tidy up."""

_log = logging.getLogger("dari.bridge")


class CliSocketServer:
    """Listens inside `async with`. The host runs commands and servers; this class only admits connections."""

    def __init__(
        self,
        run_dir: Path,
        run_command: RunCommand,
        make_server: MakeServer,
        *,
        host: Literal["daemon", "hub"] = "daemon",
        lifetime: Lifetime | None = None,
        version: str = VERSION,
        package: str = protocol.PACKAGE,
        peer_credentials: Callable[[ConnectedSocket], PeerCredentials] = peer_credentials,
        is_own_child: Callable[[int | None], bool] = is_own_child,
    ) -> None:
        self.run_command = run_command
        self.make_server = make_server
        self.attachments: dict[str, HttpAttachment] = {}
        """HTTP listeners of `dari mcp` processes, by the key that each has chosen."""
        self.socket_path = run_dir / protocol.SOCKET_NAME
        self._token_path = run_dir / protocol.TOKEN_NAME
        self._token = secrets.token_urlsafe(32)
        self._token_file: FileId | None = None
        self._host = host
        self._lifetime = lifetime or Lifetime()
        self._version = version
        self._package = package
        self._peer_credentials = peer_credentials
        self._is_own_child = is_own_child
        self._connections: set[CliConnection] = set()
        self._entering: set[asyncio.Task[None]] = set()
        self._listener: Listener | None = None
        self._finishers: list[int] = []

    async def __aenter__(self) -> CliSocketServer:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def connections(self) -> int:
        """How many clients are in."""
        return len(self._connections) + len(self._entering)

    def start(self) -> None:
        """Write the token, then listen, so that a client that can connect finds the token."""
        private_dir(self.socket_path.parent)
        listener = Listener(self.socket_path)
        try:
            self._token_file = write_private(self._token_path, self._token.encode())
        except BaseException:
            listener.close()
            raise
        listener.listen(self._accept)
        self._listener = listener

    async def stop(self, grace_s: float = COMMAND_GRACE_S) -> None:
        """Refuse new clients, give commands some time to end, then end them."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        if self._token_file is not None:
            remove_own(self._token_path, self._token_file)
        await _wait_for(set(self._entering), grace_s)
        await _wait_for(self._commands(), grace_s)
        for connection in list(self._connections):
            connection.end()
        await _wait_for({one.task for one in self._connections if one.task is not None}, CANCEL_GRACE_S)
        for connection in list(self._connections):
            connection.abort()

    def release_finishers(self) -> None:
        """Tell those who asked for the end that it has come. A process that ends tells them by ending."""
        for descriptor in self._finishers:
            os.close(descriptor)
        self._finishers.clear()

    # What a connection needs

    def enter(self, connection: CliConnection) -> None:
        self._connections.add(connection)

    def admit(self, hello: CliHandshake) -> None:
        hello.check(self._token, self._version, self._package)
        if hello.purpose == "finish" and self._host == "hub":
            raise _HostedByHub(f"the bridge runs in `dari up` (pid {os.getpid()})", "end that one with Ctrl-C")
        self._lifetime.touch()
        if hello.stays:
            self._lifetime.is_kept = True

    def finish(self, connection: CliConnection) -> None:
        self._finishers.append(os.dup(connection.transport.get_extra_info("socket").fileno()))
        connection.transport.write(protocol.encode_frame(protocol.BEGIN, b"%d" % os.getpid()))
        connection.transport.close()
        self._lifetime.stop()

    def leave(self, connection: CliConnection) -> None:
        self._connections.discard(connection)
        if connection.task is not None:
            self._lifetime.touch()

    # Who comes in

    def _accept(self, sock: socket.socket) -> None:
        try:
            peer = self._peer_credentials(sock)
        except OSError:
            peer = None
        if peer is None or peer.uid != os.geteuid():
            _log.warning("hub event=foreign_peer uid=%s", peer and peer.uid)
            sock.close()
        elif self._is_own_child(peer.pid):
            _log.warning("hub event=child_peer pid=%s", peer.pid)
            self._turn_away(
                sock,
                _RefusedChild(
                    f"process {peer.pid} belongs to a server that the bridge runs",
                    "servers do not get at the bridge that runs them: use --no-daemon",
                ),
            )
        elif self.connections >= MAX_CONNECTIONS:
            self._turn_away(
                sock, Unavailable(f"{self.connections} clients are connected", "close some, or try again later")
            )
        else:
            task = asyncio.get_running_loop().create_task(self._enter(sock, peer))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, sock: socket.socket, peer: PeerCredentials) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: CliConnection(self, peer), sock)

    def _turn_away(self, sock: socket.socket, error: Denied | Unavailable) -> None:
        """The buffer of a new socket takes a short frame at once. What it sent is left unread."""
        said = {"code": error.name, "message": error.message, "hint": error.hint}
        try:
            with sock:
                sock.send(protocol.encode_frame(protocol.REFUSED, encode(said)))
        except OSError:
            pass

    def _commands(self) -> set[asyncio.Task[None]]:
        return {one.task for one in self._connections if one.task is not None and one.is_command}


class _HostedByHub(Conflict):
    name = "hub"


class _RefusedChild(Denied):
    name = "child"


async def _wait_for(tasks: set[asyncio.Task[None]], within_s: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=within_s)
