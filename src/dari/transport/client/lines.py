"""A channel of newline-delimited JSON, as on a child's pipes, and the one to a server behind a Unix socket."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Protocol

from dari.core.slices import Sliced
from dari.daemon.unix_socket import connect_unix
from dari.errors import Failed, TimedOut, Unavailable
from dari.mcp.client.channel import Inbox
from dari.mcp.client.lines import MAX_LINE_BYTES, MAX_SKIPPED_BYTES, Lines, TooLong
from dari.rpc.codec import single_line

ENDLESS = f"has written {MAX_SKIPPED_BYTES:,} bytes without the end of a line"


class LineWriter(Protocol):
    """The part of an asyncio transport that is written to."""

    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool: ...


class LineReader(Protocol):
    """The part of an asyncio transport that is read from."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def is_closing(self) -> bool: ...


class LineChannel(asyncio.Protocol):
    """Messages leave together, once per turn of the event loop; each line that arrives is handed in."""

    carries_headers = False

    def __init__(self, most_bytes: int) -> None:
        self.is_full = False
        self.inbox: Inbox | None = None
        self._most_bytes = most_bytes
        self._writer: LineWriter | None = None
        self._outgoing: list[bytes] = []
        self._unanswered = 0
        self._reset()

    def ask(self, request_id: int, message: bytes, headers: bytes) -> None:
        # Nothing else is under way, so nothing else is likely to leave in this turn: do not wait for its end.
        writer, message = self._writer, single_line(message)  # arguments may come from a file, indented
        if not self._unanswered and not self._outgoing and writer is not None and not writer.is_closing():
            writer.write(message + b"\n")
        else:
            self._send(message)
        self._unanswered += 1

    def tell(self, message: bytes, headers: bytes = b"") -> None:
        self._send(message)

    def cancel(self, request_id: int, notice: bytes) -> None:
        if notice:
            self._send(notice)

    def agreed(self, version: str, *, is_stateless: bool) -> None:
        """A pipe carries both eras alike."""

    async def follow(self) -> None:
        """Whatever the server says arrives anyway."""

    async def drain(self) -> None:
        await self._writable.wait()

    def last_words(self) -> str:
        return ""

    # Called by the event loop.

    def data_received(self, data: bytes) -> None:
        inbox = self.inbox
        if inbox is None:
            return
        lines = self._lines.feed(data)
        self._unanswered = max(0, self._unanswered - len(lines))
        self._sliced.take(lines)
        if self._lines.is_endless:
            self._pause_reading()
            self._give_up_endless(inbox)

    def _handle(self, line: bytes | TooLong) -> None:
        inbox = self.inbox
        if inbox is None:
            return
        if isinstance(line, TooLong):
            self._refuse(inbox, line)
        else:
            self._received(inbox, line)

    def _give_up_endless(self, inbox: Inbox) -> None:
        inbox.lost(Failed(f"the server {ENDLESS}", "report it to its author"))

    def _pause_reading(self) -> None:
        if self._reader is not None and not self._reader.is_closing():
            self._reader.pause_reading()

    def _resume_reading(self) -> None:
        if self._reader is not None and not self._reader.is_closing():
            self._reader.resume_reading()

    def _received(self, inbox: Inbox, line: bytes) -> None:
        inbox.receive(line)

    def pause_writing(self) -> None:
        self.is_full = True
        self._writable.clear()

    def resume_writing(self) -> None:
        self.is_full = False
        self._writable.set()

    def _reset(self) -> None:
        self._lines = Lines(self._most_bytes)
        self._sliced: Sliced[bytes | TooLong] = Sliced(self._handle, self._pause_reading, self._resume_reading)
        self._reader: LineReader | None = None
        self._outgoing = []
        self._unanswered = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self.is_full = False

    def _send(self, message: bytes) -> None:
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(single_line(message))

    def _flush(self) -> None:
        writer = self._writer
        if self._outgoing and writer is not None and not writer.is_closing():
            self._outgoing.append(b"")
            writer.write(b"\n".join(self._outgoing))
        self._outgoing.clear()

    def _refuse(self, inbox: Inbox, line: TooLong) -> None:
        if line.request_id is None:
            inbox.receive(line.head)  # reported with the other noise
        else:
            message = f"the answer has {line.size_bytes} bytes, the limit is {self._most_bytes}"
            inbox.fail(line.request_id, Failed(message, "ask for less at once"))


READ_BYTES = 64 * 1024
KEEP_ALIVE_S = 60


def read_small(transport: object) -> None:
    """asyncio reads into a new buffer of 256 KiB every time, and clearing that costs more than a small answer."""
    if hasattr(transport, "max_size"):
        transport.max_size = READ_BYTES


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Let the kernel notice a peer that is gone without a word; a stream of events may be silent for hours."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_S)


CONNECT_TIMEOUT_S = 10.0


class UnixChannel(LineChannel):
    """Connects when it is opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(MAX_LINE_BYTES)
        self._path = path
        self._transport: asyncio.Transport | None = None

    async def open(self, inbox: Inbox) -> None:
        self._reset()
        self._lost = asyncio.Event()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                sock = await connect_unix(self._path)
            transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)
        except TimeoutError:
            raise TimedOut(f"{self._path} took no connection within {CONNECT_TIMEOUT_S:g} s", "it is busy") from None
        except OSError as error:
            hint = f"{error.strerror or error}; is the server running?"
            raise Unavailable(f"no server answers on {self._path}", hint) from None
        self._adopt(transport, inbox)

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        self.inbox = None
        self._flush()
        transport.close()
        try:
            async with asyncio.timeout(2):
                await self._lost.wait()
        except TimeoutError:
            transport.abort()
            await self._lost.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._sliced and self.inbox is not None:
            self._sliced.then(lambda: self.connection_lost(exc))
            return
        self._lost.set()
        self.resume_writing()
        if self.inbox is not None:
            self.inbox.lost(self._farewell(exc))

    def _adopt(self, transport: asyncio.Transport, inbox: Inbox) -> None:
        self._writer = self._reader = self._transport = transport
        read_small(transport)
        self.inbox = inbox

    def _farewell(self, exc: Exception | None) -> Unavailable:
        """The error for calls that wait when the other side is gone."""
        reason = f" ({exc})" if exc is not None else ""
        return Unavailable(f"the server on {self._path} hung up{reason}", "open the client again")
