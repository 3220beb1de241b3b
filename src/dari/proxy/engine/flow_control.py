"""One end of a connection, and the reasons why it is not read right now."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import cast

from dari.core.slices import Sliced, pieces

# Reasons not to read. Each has its own bit, so that two of them never free each other.
PEER_FULL = 1
CONNECTING = 2
PACED = 4
PIPELINED = 8
PAUSED = 16
SLICED = 32

PIECE_BYTES = 32 * 1024
"""Read at once where each few bytes cost: chunks, heads, frames."""

# Seconds until the first probe and between two, and how many may stay without an answer.
_PROBES = tuple(
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
    if hasattr(socket, name)
)
_RESET = struct.pack("ii", 1, 0)


class FlowControlledProtocol(asyncio.Protocol):
    """A protocol that reads only while no reason holds it: a stalled reader then costs no memory."""

    transport: asyncio.Transport
    _held = 0
    _sliced: Sliced[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self.transport = cast(asyncio.Transport, transport)
        # Its own, not the class's: both are read for each piece of data, and an instance's attribute is found faster.
        self._held = 0
        self._sliced = None

    def hold(self, reason: int) -> None:
        if not self._held and not self.transport.is_closing():
            self.transport.pause_reading()
        self._held |= reason

    def free(self, reason: int) -> None:
        if self._held & reason:
            self._held &= ~reason
            if not self._held and not self.transport.is_closing():
                self.transport.resume_reading()

    def in_slices(self, data: bytes, handle: Callable[[bytes], object]) -> None:
        """Hand data on in pieces, with turns for others in between; nothing more is read until all is handled."""
        if self._sliced is None:
            self._sliced = Sliced(handle, lambda: self.hold(SLICED), lambda: self.free(SLICED))
        self._sliced.take(pieces(data, PIECE_BYTES))

    def ends_later(self) -> bool:
        """Whether the end that was just read waits for what was read before it; `eof_received` is then called again."""
        if not self._sliced:
            return False
        self._sliced.then(self._end)
        return True

    def _end(self) -> None:
        if not self.transport.is_closing() and not self.eof_received():
            self.transport.close()

    @property
    def has_more(self) -> bool:
        """Whether something was read that is not handled yet."""
        return bool(self._sliced)

    def take_rest(self) -> bytes:
        """What was read and not handled yet, for the next owner of the transport."""
        return b"".join(self._sliced.rest()) if self._sliced is not None else b""

    def watch(self) -> None:
        """Find out by probes when a peer that ended its direction is gone for good: nothing else would tell."""
        sock = self.transport.get_extra_info("socket")
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _PROBES:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
        except (OSError, AttributeError):
            pass  # no socket of TCP, or closed since

    def reset(self) -> None:
        """End with RST, which no receiver can take for a regular end."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None and not self.transport.is_closing():
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            except OSError:
                pass
        self.transport.abort()
