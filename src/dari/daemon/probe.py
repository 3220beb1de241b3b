"""Whether a server is there, without loading what it takes to talk to one."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from dari.errors import Conflict
from dari.paths import socket_address

PROBE_TIMEOUT_S = 1.0


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


def clear_stale(path: Path) -> None:
    """Remove the socket that a killed server left behind, and nothing else."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Conflict(f"{path} exists and is not a socket", "move it away, or choose another socket path")
    if answers(path):
        raise Conflict(f"another server listens on {path}", "stop it first, or choose another socket path")
    path.unlink(missing_ok=True)
