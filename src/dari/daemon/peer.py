"""Who is at the other end of a Unix socket, as the kernel tells it."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Protocol

from msgspec import Struct

# <sys/un.h> on macOS; Python names neither.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2


class PeerCredentials(Struct, frozen=True):
    """`pid` is None where the kernel does not tell it, e.g. across pid namespaces."""

    uid: int
    gid: int
    pid: int | None


class ConnectedSocket(Protocol):
    """What asyncio's, uvloop's and plain sockets have in common."""

    def getsockopt(self, level: int, option: int, buffer_size: int, /) -> bytes: ...


def peer_credentials(sock: ConnectedSocket) -> PeerCredentials:
    """The process that connected; OSError when the kernel does not know."""
    if sys.platform == "linux":
        pid, uid, gid = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return PeerCredentials(uid, gid, pid or None)
    return parse_xucred(
        sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size),
        sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4),
    )


# struct xucred: version, uid, number of groups, groups[16] of which the first is the gid.
_XUCRED = struct.Struct("IIh16I")


def parse_xucred(credentials: bytes, pid: bytes) -> PeerCredentials:
    """The peer from the two socket options of macOS."""
    if len(credentials) < _XUCRED.size:
        raise OSError(f"the kernel told {len(credentials)} bytes of peer credentials, not {_XUCRED.size}")
    version, uid, group_count, gid, *_ = _XUCRED.unpack(credentials[: _XUCRED.size])
    if version != 0 or group_count < 1:
        raise OSError(f"peer credentials of version {version} with {group_count} groups")
    (peer_pid,) = struct.unpack("i", pid)
    return PeerCredentials(uid, gid, peer_pid or None)
