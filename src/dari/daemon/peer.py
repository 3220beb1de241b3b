"""Who is at the other end of a Unix socket, as the kernel tells it."""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from typing import Protocol

from msgspec import Struct

from dari.daemon.ancestry import read_process

# <sys/un.h> on macOS; Python names neither.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2


_SO_PEERPIDFD = 77
"""<asm-generic/socket.h>, since Linux 6.5."""


class PeerCredentials(Struct, frozen=True):
    """`pid` is None where the kernel does not tell it, e.g. across pid namespaces, and when that process has ended."""

    uid: int
    gid: int
    pid: int | None
    started: str | None = None
    """When the process was started, as `read_process` tells it: a later one with the same pid is another one. None
    where that is not read (macOS)."""


class ConnectedSocket(Protocol):
    """What asyncio's, uvloop's and plain sockets have in common."""

    def getsockopt(self, level: int, option: int, buffer_size: int, /) -> bytes: ...


def peer_credentials(sock: ConnectedSocket) -> PeerCredentials:
    """The process that connected; OSError when the kernel does not know."""
    if sys.platform == "linux":
        pid, uid, gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        started = _read_start(sock, pid) if pid else None
        return PeerCredentials(uid, gid, pid if started else None, started)
    return parse_xucred(
        sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size),
        sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4),
    )


def _read_start(sock: ConnectedSocket, pid: int) -> str | None:
    """When the process that connected was started; None when it has ended, and its pid may be another one's by now."""
    pidfd = -1
    try:
        (pidfd,) = struct.unpack("i", sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4))
    except ProcessLookupError:
        return None
    except OSError:
        pass  # an older kernel: between connect and here, microseconds as a rule, a pid could be used again
    try:
        found = read_process(pid)
        if found is None or found.is_ended or (pidfd >= 0 and _is_ended(pidfd)):
            return None
        return found.started
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def _is_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


# struct xucred: version, uid, number of groups, groups[16] of which the first is the gid.
_XUCRED = struct.Struct("IIh16I")


def parse_xucred(credentials: bytes, pid: bytes) -> PeerCredentials:
    """The peer from the two socket options of macOS."""
    if len(credentials) < _XUCRED.size:
        raise OSError(f"peer credentials must have {_XUCRED.size} bytes, got {len(credentials)}")
    version, uid, group_count, gid, *_ = _XUCRED.unpack(credentials[: _XUCRED.size])
    if version != 0 or group_count < 1:
        raise OSError(f"peer credentials of version {version} with {group_count} groups")
    (peer_pid,) = struct.unpack("i", pid)
    return PeerCredentials(uid, gid, peer_pid or None)
