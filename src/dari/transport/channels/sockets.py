"""Sockets and pipes as the client likes them: read in small portions, kept alive."""

from __future__ import annotations

import asyncio
import socket

READ_BYTES = 64 * 1024
KEEP_ALIVE_S = 60


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
