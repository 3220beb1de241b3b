"""A connected Unix socket, also when the server is busy."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from dari.paths import socket_address

BUSY_POLL_S = 0.01


async def connect_unix(path: Path) -> socket.socket:
    """A connected socket; OSError when nobody listens. The caller bounds the wait."""
    address = socket_address(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        while not _try_connect(sock, address):  # noqa: ASYNC110 - the kernel tells nobody when there is room
            await asyncio.sleep(BUSY_POLL_S)
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
