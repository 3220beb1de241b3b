"""Sockets and pipes as the client likes them: connected when the server is busy, read in small portions."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from dari.paths import socket_address

READ_BYTES = 64 * 1024
_BUSY_POLL_S = 0.01


def read_small(transport: object) -> None:
    """asyncio reads into a new buffer of 256 KiB every time, and clearing that costs more than a small answer."""
    if hasattr(transport, "max_size"):
        transport.max_size = READ_BYTES


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
