"""A seccomp filter: which system calls, and which kinds of socket, a child may use.

Landlock knows TCP ports and nothing of UDP or, before Linux 7.1, of sockets in the file system. This filter
closes them where they begin, at `socket()`. It cannot look at addresses: those are behind a pointer. For
`loopback` it therefore lets the kernel ask us about each `connect`, `bind` and `listen` (see `gate`).
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

from dari.sandbox.confinement import NetworkAccess

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_SEQPACKET = 1, 5
_TYPE_MASK = 0xF

# struct seccomp_data: int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6]
_NR, _ARCH, _FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = 0, 4, 16, 24, 32, 40, 48
_LOAD, _AND, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _ERRNO, ASK = 0x7FFF0000, 0x00050000, 0x7FC00000
_MSG_FASTOPEN = 0x20000000
_IPPROTO_TCP = 6
_X32 = 0x40000000

Instruction = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Arch:
    audit: int
    socket: int
    socketpair: int
    seccomp: int
    asking: tuple[int, ...]
    """connect, bind, listen."""
    sendto: int
    sendmsg: int
    sendmmsg: int
    refused: tuple[int, ...]


# What a server of tools has no use for and an escape has: mounts, modules, other processes' memory, keyrings,
# file handles, namespaces of others, the clock. The numbers from 424 on are the same everywhere.
_NEW = (428, 429, 430, 431, 432, 433, 438, 442, 467)
_IO_URING = (425, 426, 427)
ARCHES = {
    "x86_64": Arch(
        0xC000003E,
        socket=41,
        socketpair=53,
        seccomp=317,
        asking=(42, 49, 50),
        sendto=44,
        sendmsg=46,
        sendmmsg=307,
        refused=(
            *(101, 103, 153, 155, 159, 161, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 175, 176, 179),
            *(227, 246, 248, 249, 250, 298, 304, 305, 308, 310, 311, 312, 313, 320, 321, 323),
            *_NEW,
        ),
    ),
    "aarch64": Arch(
        0xC00000B7,
        socket=198,
        socketpair=199,
        seccomp=277,
        asking=(203, 200, 201),
        sendto=206,
        sendmsg=211,
        sendmmsg=269,
        refused=(
            *(117, 116, 58, 41, 171, 51, 89, 170, 40, 39, 224, 225, 142, 161, 162, 105, 106, 60),
            *(112, 104, 217, 218, 219, 241, 265, 266, 268, 270, 271, 272, 273, 294, 280, 282),
            *_NEW,
        ),
    ),
}


def is_known(machine: str) -> bool:
    return machine in ARCHES


def build_filter(network: NetworkAccess, *, unix_sockets: bool, machine: str = "", asks: bool = False) -> bytes:
    """The program as the kernel takes it: an array of `struct sock_filter`."""
    arch = ARCHES[machine or platform.machine()]
    # A process of another architecture (32 bits) has other numbers for the same calls: it gets none.
    program: list[Instruction] = [_load(_ARCH), (_JUMP_EQUAL, 1, 0, arch.audit), _refuse(errno.ENOSYS), _load(_NR)]
    if machine == "x86_64" or (not machine and platform.machine() == "x86_64"):
        program += [(_JUMP_AT_LEAST, 0, 1, _X32), _refuse(errno.ENOSYS)]
    for number in arch.refused:
        program += _when(number, [_refuse(errno.EPERM)])
    # io_uring makes sockets past every filter; libuv and others do without when the kernel has none.
    for number in _IO_URING:
        program += _when(number, [_refuse(errno.ENOSYS)])
    if network != "all" or not unix_sockets:
        program += _when(arch.socket, _socket_rules(network, unix_sockets))
    if not unix_sockets:
        program += _when(arch.socketpair, _pair_rules())
    if asks:
        for number in arch.asking:
            program += _when(number, [(_RETURN, 0, 0, ASK)])
        program += _opening_sends(arch)
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _socket_rules(network: NetworkAccess, unix_sockets: bool) -> list[Instruction]:
    allow: Instruction = (_RETURN, 0, 0, _ALLOW)
    deny = _refuse(errno.EACCES)
    rules = [_load(_FIRST)]
    if network == "all":
        return [*rules, (_JUMP_EQUAL, 0, 1, AF_UNIX), deny, allow]
    if unix_sockets:
        rules += [(_JUMP_EQUAL, 0, 1, AF_UNIX), allow]
    if network == "loopback":
        # TCP of both families and no more; where it leads is asked at `connect`, or bounded by a namespace.
        rules += [(_JUMP_EQUAL, 1, 0, AF_INET), (_JUMP_EQUAL, 0, 7, AF_INET6)]
        rules += [_load(_SECOND), (_AND, 0, 0, _TYPE_MASK), (_JUMP_EQUAL, 0, 4, SOCK_STREAM)]
        rules += [_load(_THIRD), (_JUMP_EQUAL, 1, 0, 0), (_JUMP_EQUAL, 0, 1, _IPPROTO_TCP), allow]
    return [*rules, deny]


def _pair_rules() -> list[Instruction]:
    """Pairs that can never be connected elsewhere: a datagram pair could be, to any socket in the file system."""
    allow: Instruction = (_RETURN, 0, 0, _ALLOW)
    rules: list[Instruction] = [_load(_SECOND), (_AND, 0, 0, _TYPE_MASK)]
    for kind in (SOCK_STREAM, SOCK_SEQPACKET):
        rules += [(_JUMP_EQUAL, 0, 1, kind), allow]
    return [*rules, _refuse(errno.EACCES)]


def _opening_sends(arch: Arch) -> list[Instruction]:
    """TCP Fast Open connects without `connect`: by an address given to `sendto`, by a flag of the other two."""
    allow: Instruction = (_RETURN, 0, 0, _ALLOW)
    deny = _refuse(errno.EACCES)
    has_address = [_load(_FIFTH), (_JUMP_EQUAL, 0, 3, 0), _load(_FIFTH + 4), (_JUMP_EQUAL, 0, 1, 0), allow, deny]
    rules = _when(arch.sendto, has_address)
    for number, flags in ((arch.sendmsg, _THIRD), (arch.sendmmsg, _FOURTH)):
        rules += _when(number, [_load(flags), (_AND, 0, 0, _MSG_FASTOPEN), (_JUMP_EQUAL, 0, 1, 0), allow, deny])
    return rules


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """`body` must return in every case; the number of the call stays loaded for those after it."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def _refuse(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)
