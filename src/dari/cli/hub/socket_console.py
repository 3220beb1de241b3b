"""A person's terminal at the other end of a connection: what a command prints to and reads from.

`FrameWriter` gathers frames over one turn of the loop, and holds them back while the client does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dari.cli.hub import protocol
from dari.cli.hub.protocol import encode_frame
from dari.errors import InvalidInput

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


MAX_STDIN_BYTES = 64 * 1024 * 1024


class SocketConsole:
    """Has the shape of `dari.cli.kit.console.Console`; `out` and `err` never wait, `drain` does."""

    def __init__(self, outbox: FrameWriter, tty: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        columns = tty.get("columns")
        self.columns: int = columns if isinstance(columns, int) and 0 < columns <= 10_000 else 80
        self.stdin_is_tty = tty.get("stdin") is True
        self.stdout_is_tty = tty.get("stdout") is True
        self.stderr_is_tty = tty.get("stderr") is True
        self.colour = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        self._outbox = outbox
        self._stdin: list[bytes] = []
        self._stdin_bytes = 0
        self._stdin_end: asyncio.Future[None] | None = None
        self._answer: asyncio.Future[str] | None = None
        self._turn = asyncio.Lock()

    def out(self, text: str) -> None:
        self._outbox.put(protocol.OUT, text.encode("utf-8", "surrogateescape"))

    def err(self, text: str) -> None:
        self._outbox.put(protocol.ERR, text.encode("utf-8", "surrogateescape"))

    async def drain(self) -> None:
        await self._outbox.drain()

    async def read_stdin(self) -> bytes:
        """All of it; at most 64 MB. Nothing is left for a second time."""
        if self._stdin_end is None:
            self._stdin_end = asyncio.get_running_loop().create_future()
            self._outbox.put(protocol.WANT)
        await asyncio.shield(self._stdin_end)
        pieces, self._stdin = self._stdin, []
        if self._stdin_bytes > MAX_STDIN_BYTES:
            limit = MAX_STDIN_BYTES // (1024 * 1024)
            raise InvalidInput(f"stdin has more than {limit} MB", "put it into a file that the server can read")
        return b"".join(pieces)

    async def ask(self, prompt: str, *, secret: bool = False) -> str:
        if not self.stdin_is_tty:
            raise InvalidInput("a question needs a person, and stdin is not a terminal", "run it in a terminal")
        async with self._turn:
            self._answer = asyncio.get_running_loop().create_future()
            self._outbox.put(protocol.ASK, (b"\1" if secret else b"\0") + prompt.encode("utf-8", "surrogateescape"))
            return await self._answer

    def hear(self, kind: bytes, payload: bytes) -> bool:
        """A frame of the client; False when this is none of a terminal."""
        if kind == protocol.IN:
            self._stdin_bytes += len(payload)
            if self._stdin_bytes > MAX_STDIN_BYTES:
                self._stdin.clear()
                self._end_stdin()
            elif self._stdin_end is not None and not self._stdin_end.done():
                self._stdin.append(payload)
        elif kind == protocol.IN_END:
            self._end_stdin()
        elif kind == protocol.ANSWER:
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(payload.decode("utf-8", "surrogateescape"))
        else:
            return False
        return True

    def _end_stdin(self) -> None:
        if self._stdin_end is not None and not self._stdin_end.done():
            self._stdin_end.set_result(None)
