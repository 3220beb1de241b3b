"""Broker of `network: loopback`: the kernel asks us about each connect, bind and listen of a child.

We never say "go on": the child could change the address meanwhile. We copy the address, look at the copy, take
a duplicate of the child's socket and do the call ourselves, with the copy. When we are gone, every question is
answered with ENOSYS by the kernel.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import ipaddress
import os
import select
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

PIDFD_GETFD = 438
MAX_BROKER_THREADS = 2
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
# struct seccomp_notif: __u64 id; __u32 pid, flags; then struct seccomp_data.
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_MAX_ADDRESS_BYTES = 128
_CONNECT = {42, 203}
_LISTEN = {50, 201}


@dataclass(frozen=True, slots=True)
class SyscallNotification:
    id: int
    thread: int
    call: int
    descriptor: int
    address: int
    size: int

    @classmethod
    def parse(cls, data: bytes) -> SyscallNotification:
        id_, thread, _, call, _, _, first, second, third, *_ = _NOTIFICATION.unpack(data)
        return cls(id_, thread, call, first & 0xFFFFFFFF, second, third & 0xFFFFFFFF)


def is_loopback_address(address: bytes, *, is_connect: bool) -> bool:
    """Whether a `sockaddr` stays on this machine. Any address (0.0.0.0) does as a destination, not as a listener."""
    if len(address) < 2:
        return False
    family = struct.unpack_from("=H", address)[0]
    if family == socket.AF_UNSPEC:
        return is_connect  # takes a connection back
    if family == socket.AF_INET and len(address) >= 8:
        ip: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv4Address(address[4:8])
    elif family == socket.AF_INET6 and len(address) >= 24:
        six = ipaddress.IPv6Address(address[8:24])
        ip = six.ipv4_mapped or six
    else:
        return False
    return ip.is_loopback or (is_connect and ip.is_unspecified)


class LoopbackBroker:
    """Lives in the event loop as long as a process with the filter does."""

    def __init__(self, listener: int) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._library = ctypes.CDLL(None, use_errno=True)
        self._threads: ThreadPoolExecutor | None = None
        self._loop.add_reader(listener, self._hear)

    @classmethod
    def from_socket(cls, source: socket.socket) -> LoopbackBroker:
        """The launcher has sent the descriptor over this socket before the program started."""
        source.setblocking(False)
        _, descriptors, _, _ = socket.recv_fds(source, 1, 1)
        return cls(descriptors[0])

    def close(self) -> None:
        if self._listener >= 0:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = -1
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)

    def _hear(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        if not any(events & select.POLLIN for _, events in poll.poll(0)):
            self.close()  # the last process with this filter has ended
            return
        data = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, data)
        except OSError:
            return  # the asker was killed meanwhile
        question = SyscallNotification.parse(bytes(data))
        try:
            mine = self._take_socket(question)
        except OSError:
            self._answer(question, errno.EACCES)
            return
        if os.get_blocking(mine):
            # A full backlog holds a blocking connect; it must hold neither us nor the threads of others.
            if self._threads is None:
                self._threads = ThreadPoolExecutor(MAX_BROKER_THREADS, "loopback-gate")
            self._threads.submit(self._settle, question, mine)
        else:
            self._settle(question, mine)

    def _settle(self, question: SyscallNotification, mine: int) -> None:
        try:
            result = self._perform(question, mine)
        except OSError as error:
            result = error.errno or errno.EACCES
        finally:
            os.close(mine)
        self._answer(question, result)

    def _perform(self, question: SyscallNotification, mine: int) -> int:
        """0 or an errno."""
        if question.call in _LISTEN:
            with socket.socket(fileno=os.dup(mine)) as listening:
                host = listening.getsockname()[0]
                if not ipaddress.ip_address(host).is_loopback:
                    return errno.EACCES
                listening.listen(min(question.address, 4096))
                return 0
        is_connect = question.call in _CONNECT
        address = self._read_address(question)
        if not is_loopback_address(address, is_connect=is_connect):
            return errno.EACCES
        perform = self._library.connect if is_connect else self._library.bind
        return 0 if perform(mine, address, len(address)) == 0 else ctypes.get_errno()

    def _take_socket(self, question: SyscallNotification) -> int:
        process = os.pidfd_open(_process_of(question.thread))
        try:
            # Asked once more after the process is held: its number may have gone to another one.
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", question.id))
            mine = int(self._library.syscall(PIDFD_GETFD, process, question.descriptor, 0))
        finally:
            os.close(process)
        if mine < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return mine

    def _read_address(self, question: SyscallNotification) -> bytes:
        size = min(question.size, _MAX_ADDRESS_BYTES)
        memory = os.open(f"/proc/{question.thread}/mem", os.O_RDONLY)
        try:
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", question.id))
            return os.pread(memory, size, question.address)
        finally:
            os.close(memory)

    def _answer(self, question: SyscallNotification, error: int) -> None:
        try:
            fcntl.ioctl(self._listener, _SEND, _RESPONSE.pack(question.id, 0, -error, 0))
        except OSError:
            pass  # it waits no more


def _process_of(thread: int) -> int:
    """Descriptors for processes are made from the first thread's number."""
    with open(f"/proc/{thread}/status", "rb") as file:
        for line in file:
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, "no such thread")
