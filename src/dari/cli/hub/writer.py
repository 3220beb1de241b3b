"""Frames on their way to a client: gathered over one turn of the loop, and held back when it does not read."""

from __future__ import annotations

import asyncio

from dari.cli.hub.protocol import encode_frame

MAX_BATCH_BYTES = 64 * 1024
HIGH_WATER_BYTES = 256 * 1024
MAX_UNREAD_BYTES = 128 * 1024 * 1024
"""A command that prints on and on without `drain()` to a client that has stopped reading is ended here."""


class FrameWriter:
    """`put` never waits; `drain` waits for a client that is slower than its command."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._gathered = bytearray()
        self._is_planned = False
        self._writable = asyncio.Event()
        self._writable.set()
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)

    def put(self, kind: bytes, payload: bytes = b"") -> None:
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._transport.abort()
            return
        if len(payload) > MAX_BATCH_BYTES:
            self._gathered += kind + len(payload).to_bytes(4, "big")
            self.flush()
            self._transport.write(payload)
            return
        self._gathered += encode_frame(kind, payload)
        if len(self._gathered) > MAX_BATCH_BYTES:
            self.flush()
        elif not self._is_planned:
            self._is_planned = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        self._is_planned = False
        if self._gathered and not self._transport.is_closing():
            self._transport.write(bytes(self._gathered))
        self._gathered.clear()

    async def drain(self) -> None:
        """Return when little is left unread, or nobody is there to read it."""
        self.flush()
        # Always a turn of the loop: a command that prints in circles could not be cancelled otherwise.
        await asyncio.sleep(0)
        await self._writable.wait()

    def pause(self) -> None:
        self._writable.clear()

    def resume(self) -> None:
        self._writable.set()
