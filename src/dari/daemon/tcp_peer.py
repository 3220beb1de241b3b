"""Which user is at the other end of a TCP connection that stays on this machine, as the kernel tells it.

On Linux the kernel is asked by `sock_diag` (one question, about 30 µs). Where that is missing `/proc/net/tcp` and
`/proc/net/tcp6` are read, for which the kernel walks its whole table (4 ms when it is long). Other systems do not tell:
`can_tell` is False there.

A socket whose process has closed it, or that another network namespace holds, has no user here. A proxy between two
namespaces (a container's published port, say) is the user that the proxy runs as.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
import sys
from pathlib import Path
from typing import NamedTuple

Address = tuple[str, int]


class SocketOwner(NamedTuple):
    """Whose a socket is: the user that opened it, and the number under which processes have it in /proc/PID/fd."""

    uid: int
    inode: int


_PROC_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR = 2
_NLM_F_REQUEST = 1
_NO_COOKIE = 0xFFFFFFFF
# <linux/netlink.h> nlmsghdr: length, type, flags, sequence, pid.
_HEADER = struct.Struct("=IHHII")
# <linux/inet_diag.h> inet_diag_req_v2 up to its id: family, protocol, extensions, padding, states.
_REQUEST = struct.Struct("=BBBBI")
# inet_diag_sockid: source and destination port and address, the interface, two words of cookie.
_SOCKET_ID = struct.Struct("!HH16s16s")
_INTERFACE_AND_COOKIE = struct.Struct("=III")
# inet_diag_msg: family, state, timer, retransmissions; then the id; then expiry, two queues, uid, inode.
_ANSWER_STATE = _HEADER.size + 1
_ANSWER_OWNER = struct.Struct("=II")
_ANSWER_OWNER_AT = _HEADER.size + 4 + 48 + 12
# What a connected socket can be in. The others (a socket that still connects, one that only waits out its last
# packets, a listener) are not the peer of a connection that was accepted, and the kernel shows some of them as root's.
_ESTABLISHED, _FIN_WAIT_1, _FIN_WAIT_2, _CLOSE_WAIT, _LAST_ACK, _CLOSING = 1, 4, 5, 8, 9, 11
_CONNECTED = frozenset({_ESTABLISHED, _FIN_WAIT_1, _FIN_WAIT_2, _CLOSE_WAIT, _LAST_ACK, _CLOSING})
_LISTEN = 10


def knows_tcp_owners() -> bool:
    """Whether this system tells the user of a TCP socket at all."""
    return sys.platform == "linux"


def is_local(host: str) -> bool:
    """Whether this address belongs to this machine (to our network namespace): loopback, or one of its own."""
    address = _address(host)
    if address.is_loopback:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))  # sends nothing; the kernel picks the route, and with it our own address
        except OSError:
            return False
        return _address(probe.getsockname()[0]) == address


def tcp_peer_owner(peer: Address, own: Address) -> SocketOwner | None:
    """Who holds the socket `peer`, which is connected to our `own`; None when no process does."""
    try:
        return _ask_kernel(peer, own)
    except OSError:
        return _read_tables(peer, own)


def tcp_peer_uid(peer: Address, own: Address) -> int | None:
    """The user that holds the socket `peer`, which is connected to our `own`; None when no process does."""
    holder = tcp_peer_owner(peer, own)
    return None if holder is None else holder.uid


def tcp_peer_pid(peer: Address, own: Address) -> int | None:
    """The process that holds the socket `peer`, as far as we may look into processes. Reads the descriptors of every
    process: some milliseconds."""
    owner = tcp_peer_owner(peer, own)
    if owner is None:
        return None
    wanted = f"socket:[{owner.inode}]"
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with os.scandir(f"/proc/{entry.name}/fd") as descriptors:
                if any(os.readlink(each.path) == wanted for each in descriptors):
                    return int(entry.name)
        except OSError:
            continue  # it has ended, closed one meanwhile, or is another user's
    return None


def listener_uid(own: Address) -> int | None:
    """The user that listens where a connection to `own` would arrive; None where there is none, or it is not known."""
    host, port = _address(own[0]), own[1]
    every = {"0" * 8, "0" * 32}
    names = {_hex(host), _hex(_mapped(host)), *every}
    for table in _PROC_TABLES.values():
        for local, _, state, uid, _ in _rows(table):
            name, _, number = local.partition(":")
            if state == _LISTEN and name in names and int(number, 16) == port:
                return uid
    return None


def _ask_kernel(peer: Address, own: Address) -> SocketOwner | None:
    source, target = _address(peer[0]), _address(own[0])
    family = socket.AF_INET if source.version == 4 else socket.AF_INET6
    socket_id = _SOCKET_ID.pack(peer[1], own[1], source.packed, target.packed)
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + socket_id
    body += _INTERFACE_AND_COOKIE.pack(0, _NO_COOKIE, _NO_COOKIE)
    request = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as kernel:
        kernel.setblocking(False)
        kernel.sendto(request, (0, 0))
        answer = kernel.recv(4096)  # the kernel has answered when `sendto` returns
    _, kind, _, _, _ = _HEADER.unpack_from(answer)
    if kind == _NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        if -code == errno.ENOENT:
            return None
        raise OSError(-code, os.strerror(-code))
    uid, inode = _ANSWER_OWNER.unpack_from(answer, _ANSWER_OWNER_AT)
    return SocketOwner(uid, inode) if answer[_ANSWER_STATE] in _CONNECTED and inode else None


def _read_tables(peer: Address, own: Address) -> SocketOwner | None:
    source, target = _address(peer[0]), _address(own[0])
    wanted = {
        (f"{_hex(a)}:{peer[1]:04X}", f"{_hex(b)}:{own[1]:04X}")
        for a, b in ((source, target), (_mapped(source), _mapped(target)))
    }
    for table in _PROC_TABLES.values():
        for local, remote, state, uid, inode in _rows(table):
            if (local, remote) in wanted:
                return SocketOwner(uid, inode) if state in _CONNECTED and inode else None
    return None


def _rows(table: Path) -> list[tuple[str, str, int, int, int]]:
    """Local and remote address, state, uid and inode of every socket in one of the kernel's tables."""
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except OSError:
        return []
    rows = (line.split() for line in lines)
    return [(row[1], row[2], int(row[3], 16), int(row[7]), int(row[9])) for row in rows if len(row) > 9]


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address without a zone; an IPv4 address inside an IPv6 one is the IPv4 address."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv6Address:
    if isinstance(address, ipaddress.IPv6Address):
        return address
    return ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed)


def _hex(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """As the kernel's tables spell it: words of four bytes in the machine's own order."""
    words = struct.unpack(f"={len(address.packed) // 4}I", address.packed)
    return "".join(f"{word:08X}" for word in words)
