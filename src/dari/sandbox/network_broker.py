"""Broker of `network: loopback`: the kernel asks us about each connect, bind and listen of a child.

We never say "go on": the child could change the address meanwhile. We copy the address, look at the copy, take
a duplicate of the child's socket and do the call ourselves, with the copy. When we are gone, every question is
answered with ENOSYS by the kernel.

A call is never done in the event loop: whether a socket blocks is the child's to change, also while we connect it.
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
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

PIDFD_GETFD = 438
MAX_CONNECTING = 2
"""Threads for sockets that block: a full backlog holds each of them until its connection times out."""
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


def listen_on_loopback(listening: socket.socket, backlog: int) -> int:
    """0 or an errno. A connection that the child ends between the look and `listen` takes the address along, and the
    kernel then listens on all: so we look again."""
    if not _has_loopback_name(listening):
        return errno.EACCES
    listening.listen(backlog)
    if _has_loopback_name(listening):
        return 0
    listening.shutdown(socket.SHUT_RDWR)
    return errno.EACCES


def _has_loopback_name(bound: socket.socket) -> bool:
    is_internet = bound.family in (socket.AF_INET, socket.AF_INET6)
    return is_internet and ipaddress.ip_address(bound.getsockname()[0]).is_loopback


class LoopbackBroker:
    """Lives in the event loop as long as a process with the filter does."""

    def __init__(self, listener: int) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._library = ctypes.CDLL(None, use_errno=True)
        self._prompt = ThreadPoolExecutor(1, "loopback-broker")
        self._connecting = ThreadPoolExecutor(MAX_CONNECTING, "loopback-connect")
        self._lock = threading.Lock()
        self._taken: set[int] = set()
        """Sockets of the child that a thread works with."""
        self._loop.add_reader(listener, self._hear)

    @classmethod
    def from_socket(cls, source: socket.socket) -> LoopbackBroker:
        """The launcher has sent the descriptor over this socket before the program started."""
        source.setblocking(False)
        _, descriptors, _, _ = socket.recv_fds(source, 1, 1)
        return cls(descriptors[0])

    def close(self) -> None:
        with self._lock:
            if self._listener < 0:
                return
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = -1
            # A thread that still connects would keep our own process from ending: the wait can last two minutes.
            for mine in self._taken:
                with socket.socket(fileno=os.dup(mine)) as connecting, suppress(OSError):
                    connecting.shutdown(socket.SHUT_RDWR)
        for threads in (self._prompt, self._connecting):
            threads.shutdown(wait=False, cancel_futures=True)

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
        # A question that waits for a thread holds no descriptor: a child may ask with a thousand threads.
        threads = self._connecting if self._may_block(question) else self._prompt
        threads.submit(self._settle, question)

    def _may_block(self, question: SyscallNotification) -> bool:
        if question.call not in _CONNECT:
            return False
        try:
            mine = self._take_socket(question)
        except OSError:
            return False
        try:
            return os.get_blocking(mine)
        finally:
            os.close(mine)

    def _settle(self, question: SyscallNotification) -> None:
        result = errno.EACCES
        try:
            mine = self._take_socket(question)
            with self._lock:
                self._taken.add(mine)
            try:
                result = self._perform(question, mine)
            finally:
                with self._lock:
                    self._taken.discard(mine)
                os.close(mine)
        except OSError as error:
            result = error.errno or errno.EACCES
        finally:
            self._answer(question, result)

    def _perform(self, question: SyscallNotification, mine: int) -> int:
        """0 or an errno."""
        if question.call in _LISTEN:
            with socket.socket(fileno=os.dup(mine)) as listening:
                return listen_on_loopback(listening, min(question.address, 4096))
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
        with self._lock, suppress(OSError):  # it may wait no more
            if self._listener >= 0:
                fcntl.ioctl(self._listener, _SEND, _RESPONSE.pack(question.id, 0, -error, 0))


def _process_of(thread: int) -> int:
    """Descriptors for processes are made from the first thread's number."""
    with open(f"/proc/{thread}/status", "rb") as file:
        for line in file:
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, "no such thread")
