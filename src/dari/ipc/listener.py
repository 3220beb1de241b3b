"""The socket file of a daemon: 0600, made without a window, never taken from a daemon that lives."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from dari.errors import Conflict
from dari.paths import file_id, remove_own, socket_address

PROBE_TIMEOUT_S = 1.0


class Listener:
    """A bound socket that does not listen yet: tokens are written first, so nobody connects too early."""

    def __init__(self, path: Path) -> None:
        address = socket_address(path)
        _clear(path)
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The mode of a socket file is set by bind() alone; a chmod after it would leave a window.
        mask = os.umask(0o177)
        try:
            self.sock.bind(address)
            self._id = file_id(path)
        except BaseException:
            self.sock.close()
            raise
        finally:
            os.umask(mask)

    def close(self) -> None:
        """Close the socket and remove its file, unless another daemon has taken the name."""
        self.sock.close()
        remove_own(self.path, self._id)


def answers(path: Path) -> bool:
    """Whether a daemon accepts connections there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT_S)
        try:
            probe.connect(socket_address(path))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return False
        except OSError:
            return True  # it listens, but its backlog is full or we may not connect
    return True


def _clear(path: Path) -> None:
    """Remove what a killed daemon left behind."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Conflict(f"{path} exists and is not a socket", "move it away, or choose another socket path")
    if answers(path):
        raise Conflict(f"a daemon already answers on {path}", "stop it first, or choose another socket path")
    path.unlink(missing_ok=True)
