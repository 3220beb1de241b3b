"""Whether a daemon is there, without loading what it takes to talk to one."""

from __future__ import annotations

import socket
from pathlib import Path

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
