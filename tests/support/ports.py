"""A port for a program that is told its number."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Nobody else gets it while the block lasts: neither a listener on any free port nor a connection's own end.

    A program that names it may listen on it, as every server sets SO_REUSEADDR; until then connections are refused.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
