"""Sockets and pipes as the client likes them: connected when the server is busy, read in small portions."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from dari.paths import socket_address

READ_BYTES = 64 * 1024
KEEP_ALIVE_S = 60
_BUSY_POLL_S = 0.01


def read_small(transport: object) -> None:
    """asyncio reads into a new buffer of 256 KiB every time, and clearing that costs more than a small answer."""
    if hasattr(transport, "max_size"):
        transport.max_size = READ_BYTES


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Let the kernel notice a peer that is gone without a word; a stream of events may be silent for hours."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_S)


async def dial(path: Path) -> socket.socket:
    """A connected socket; OSError when nobody listens. The caller bounds the wait."""
    address = socket_address(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        while not _try_connect(sock, address):  # noqa: ASYNC110 - the kernel tells nobody when there is room
            await asyncio.sleep(_BUSY_POLL_S)
    except BaseException:
        sock.close()
        raise
    return sock


def _try_connect(sock: socket.socket, address: str) -> bool:
    """False while the server's backlog is full; asyncio's own connect takes that for a success."""
    try:
        sock.connect(address)
    except BlockingIOError:
        return False
    return True
