"""Serve on a Unix socket: newline JSON, or HTTP when a client starts that way."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from dari.core.scopes import Grant
from dari.daemon.peer import ConnectedSocket, PeerCredentials, peer_credentials
from dari.daemon.person import AGENT_HOSTS, find_confined
from dari.daemon.unix_socket import bind_private, is_hung_up
from dari.log import format_event
from dari.mcp.server import Server
from dari.paths import FileId, file_id, own_dir, remove_own
from dari.transport.bind import BindFailed
from dari.transport.lines import LineReplyChannel

_HTTP_STARTS = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ")
_MAX_START_BYTES = max(len(start) for start in _HTTP_STARTS)
BACKLOG = 1024
MAX_CONNECTIONS = 512
EVICT_IDLE_S = 60.0
"""When all places are taken, a client that was silent this long gives its own up; one that never spoke, at once."""
_log = logging.getLogger("dari.transport")


class _Connection(asyncio.Protocol):
    """Looks at the first bytes, then speaks lines itself or hands the transport to the HTTP protocol."""

    def __init__(self, owner: UnixServer) -> None:
        self._owner = owner
        self._head = b""
        self.channel: LineReplyChannel | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport but are not subclasses of it.
        self.transport = cast(asyncio.Transport, transport)
        peer = _read_peer(transport.get_extra_info("socket"))
        if peer is None or peer.uid != os.geteuid():
            _log.warning(format_event("unix", "refused", "the peer is another user"))
            self.transport.abort()
            return
        if len(self._owner.connections) >= MAX_CONNECTIONS and not self._owner.evicts():
            _log.warning(format_event("unix", "refused", f"{MAX_CONNECTIONS} connections are open"))
            self.transport.abort()
            return
        AGENT_HOSTS.note_client(peer.pid)  # now: an agent can end its server as soon as that has sent a call
        self._peer = peer
        self._owner.connections[self] = asyncio.get_running_loop().time()

    @property
    def is_busy(self) -> bool:
        """Whether it waits for an answer, or listens."""
        session = None if self.channel is None else self.channel.session
        return session is not None and bool(session.running)

    def data_received(self, data: bytes) -> None:
        connections = self._owner.connections
        if self in connections:
            del connections[self]
            connections[self] = asyncio.get_running_loop().time()
        if self.channel is not None:
            self.channel.feed(data)
            return
        self._head += data
        if self._owner.make_http is not None:
            if self._head.startswith(_HTTP_STARTS):
                self._become_http(self._owner.make_http())
                return
            if len(self._head) < _MAX_START_BYTES and any(start.startswith(self._head) for start in _HTTP_STARTS):
                return
        self.channel = LineReplyChannel(self._owner.server, self._grant(), self, "unix")
        self.channel.feed(self._head)

    def eof_received(self) -> bool:
        """A client may close its writing end and still wait for answers."""
        if self.channel is None or is_gone(self.transport.get_extra_info("socket")):
            return False
        self._owner.finish(self.channel)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self._owner.connections.pop(self, None)
        if self.channel is not None:
            self.channel.close()

    def pause_writing(self) -> None:
        if self.channel is not None:
            self.channel.pause_writing()

    def resume_writing(self) -> None:
        if self.channel is not None:
            self.channel.resume_writing()

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    def unread_bytes(self) -> int:
        return self.transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self) -> None:
        self.transport.close()

    def abort(self) -> None:
        self.transport.abort()

    def _grant(self) -> Grant:
        is_free = not find_confined(self._peer.pid, self._peer.started)
        return self._owner.grant if is_free else replace(self._owner.grant, may_relay_person=False)

    def _become_http(self, protocol: asyncio.Protocol) -> None:
        self._owner.connections.pop(self, None)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(self._head)


class UnixServer:
    """A 0600 socket in a directory that only we can write to."""

    def __init__(
        self, server: Server, grant: Grant, path: Path, make_http: Callable[[], asyncio.Protocol] | None = None
    ) -> None:
        self.server = server
        self.grant = grant
        self.path = path
        self.make_http = make_http
        self.connections: dict[_Connection, float] = {}
        """When each was heard from last; the one of the longest silence comes first."""
        self._finishing: set[asyncio.Task[None]] = set()
        self._listener: asyncio.AbstractServer | None = None
        self.listener: socket.socket | None = None
        self._file: FileId | None = None

    async def start(self) -> None:
        """Listen; a stale socket file is replaced, a live one refused."""
        own_dir(self.path.parent)
        try:
            listener = bind_private(self.path)
        except OSError as error:
            raise BindFailed(f"cannot listen on {self.path}: {error.strerror}", "choose another --socket") from None
        self._file = file_id(self.path)
        self.listener = listener
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(lambda: _Connection(self), sock=listener, backlog=BACKLOG)

    def evicts(self) -> bool:
        """End the connection that was silent longest, one that never said a word before the others."""
        before_s = asyncio.get_running_loop().time() - EVICT_IDLE_S
        idle = [one for one, heard_s in self.connections.items() if one.channel is None or heard_s <= before_s]
        idle = [one for one in idle if not one.is_busy]
        if not idle:
            return False
        chosen = next((one for one in idle if one.channel is None), idle[0])
        _log.info(format_event("unix", "evicted", "a silent connection went for a new one"))
        self.connections.pop(chosen, None)
        chosen.close()
        return True

    def refuse(self) -> None:
        """Take no more connections; the socket file goes."""
        if self._listener is not None:
            self._listener.close()
        if self._file is not None:
            remove_own(self.path, self._file)

    async def stop(self, grace_s: float) -> None:
        """Let the calls of every client finish for a while, then end the connections."""
        self.refuse()
        await asyncio.gather(*(c.channel.finish(grace_s) for c in list(self.connections) if c.channel is not None))
        for connection in list(self.connections):
            connection.close()
        for task in list(self._finishing):
            task.cancel()

    def finish(self, channel: LineReplyChannel) -> None:
        task = asyncio.get_running_loop().create_task(channel.finish())
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)


def is_gone(peer: socket.socket) -> bool:
    """Whether the peer closed both directions (it was killed, say): then nobody waits for answers."""
    return sys.platform == "linux" and is_hung_up(peer)


def _read_peer(sock: ConnectedSocket) -> PeerCredentials | None:
    try:
        return peer_credentials(sock)
    except OSError:
        return None
