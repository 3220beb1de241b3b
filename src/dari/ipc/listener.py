"""The socket file of a daemon: 0600, made without a window, never taken from a daemon that lives."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

from dari.ipc.probe import clear_stale
from dari.paths import file_id, remove_own, socket_address

logger = logging.getLogger("dari.ipc")

BACKLOG = 1024
ACCEPT_BATCH = 64
ACCEPT_PAUSE_S = 0.5

Accept = Callable[[socket.socket], None]


class Listener:
    """A bound socket. It listens later, when the tokens are written, so that nobody connects too early.

    It accepts by itself instead of through `asyncio.Server`, which forgets connections that it is
    still setting up when it is closed.
    """

    def __init__(self, path: Path) -> None:
        address = socket_address(path)
        clear_stale(path)
        self.path = path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The mode of a socket file is set by bind() alone; a chmod after it would leave a window.
        mask = os.umask(0o177)
        try:
            self._sock.bind(address)
            self._id = file_id(path)
        except BaseException:
            self._sock.close()
            raise
        finally:
            os.umask(mask)

    def listen(self, accept: Accept) -> None:
        """Hand every connection to `accept` until `close()`."""
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
        for _ in range(ACCEPT_BATCH):
            try:
                connection, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(accept, error)
                return
            connection.setblocking(False)
            accept(connection)

    def _pause(self, accept: Accept, error: OSError) -> None:
        """Out of descriptors: the caller stays in the backlog, and the loop must not spin until there is one."""
        assert self._loop is not None
        logger.error("socket=%s event=accept_failed error=%s", self.path, error.strerror)
        self._loop.remove_reader(self._sock)
        self._loop.call_later(ACCEPT_PAUSE_S, self._resume, accept)

    def _resume(self, accept: Accept) -> None:
        if self._loop is not None:
            self._loop.add_reader(self._sock, self._accept_all, accept)
