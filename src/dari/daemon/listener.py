"""The socket file of a daemon: 0600, made without a window, never taken from a daemon that lives."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dari.daemon.unix_socket import bind_private, is_hung_up
from dari.paths import file_id, remove_own

logger = logging.getLogger("dari.daemon")

BACKLOG = 1024
ACCEPT_BATCH = 64
ACCEPT_PAUSE_S = 0.5

_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""The machine has none left now, and may have some again."""

Accept = Callable[[socket.socket], None]


class Bound(Protocol):
    """A socket, or what asyncio and uvloop show of theirs."""

    def fileno(self) -> int: ...


def is_listening(bound: Bound) -> bool:
    """Whether connections can still arrive there. One that was closed or shut down spins in `accept` for ever."""
    try:
        with socket.socket(fileno=os.dup(bound.fileno())) as sock:
            # A Unix socket that was shut down still calls itself a listener, and is hung up.
            return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)) and not is_hung_up(sock)
    except OSError as error:
        return error.errno in _PASSING  # no descriptor left to look with


class Listener:
    """A bound socket. It listens later, when the tokens are written, so that no client connects too early.

    It accepts by itself instead of through `asyncio.Server`, which forgets connections that it is
    still setting up when it is closed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_dead: Callable[[OSError], object] = lambda error: None
        self._sock = bind_private(path)
        self._id = file_id(path)

    def listen(self, accept: Accept, on_dead: Callable[[OSError], object] = lambda error: None) -> None:
        """Hand every connection to `accept` until `close()`; `on_dead` is called when no more can come."""
        self._on_dead = on_dead
        self._sock.setblocking(False)
        self._sock.listen(BACKLOG)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._sock, self._accept_all, accept)

    def close(self) -> None:
        """Close the socket and remove its file, unless another daemon has taken the name."""
        if self._loop is not None:
            self._loop.remove_reader(self._sock)
            self._loop = None
        self._sock.close()
        remove_own(self.path, self._id)

    def _accept_all(self, accept: Accept) -> None:
        for number in range(ACCEPT_BATCH):
            try:
                connection, _ = self._sock.accept()
            except (InterruptedError, ConnectionAbortedError):
                return
            except BlockingIOError as error:
                if number == 0 and not is_listening(self._sock):  # woken for nobody, and again, without an end
                    self._pause(accept, error)
                return
            except OSError as error:
                self._pause(accept, error)
                return
            connection.setblocking(False)
            accept(connection)

    def _pause(self, accept: Accept, error: OSError) -> None:
        """Out of descriptors: the caller stays in the backlog, and the loop must not spin until there is one."""
        assert self._loop is not None
        if error.errno not in _PASSING and not is_listening(self._sock):
            logger.error("socket=%s event=fatal the listener is gone: %s", self.path, error.strerror)
            self._loop.remove_reader(self._sock)
            self._on_dead(error)
            return
        logger.error("socket=%s event=accept_failed error=%s", self.path, error.strerror)
        self._loop.remove_reader(self._sock)
        self._loop.call_later(ACCEPT_PAUSE_S, self._resume, accept)

    def _resume(self, accept: Accept) -> None:
        if self._loop is not None:
            self._loop.add_reader(self._sock, self._accept_all, accept)
