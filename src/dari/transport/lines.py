"""One client on a byte stream (stdin/stdout, a Unix socket): framing, back-pressure, orderly end."""

from __future__ import annotations

import asyncio
from typing import Protocol

from dari.core.grant import Grant
from dari.mcp.link import Link
from dari.mcp.server import Server
from dari.rpc.codec import INVALID_REQUEST, error_message
from dari.rpc.framing import Framing

MOST_IN_FLIGHT = 512
MOST_UNREAD_BYTES = 64 * 1024 * 1024
END_GRACE_S = 5.0


class Stream(Protocol):
    """What the link needs of an asyncio transport pair."""

    def write(self, data: bytes) -> None: ...
    def unread_bytes(self) -> int: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class LineLink(Link):
    """Serves every message that is fed; replies leave together, once per turn of the event loop."""

    def __init__(self, server: Server, grant: Grant, stream: Stream, transport: str) -> None:
        self.transport = transport
        self.grant = grant
        self._server = server
        self._stream = stream
        self._framing = Framing()
        self._loop = asyncio.get_running_loop()
        self._outgoing: list[bytes] = []
        self._flush_planned = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_reading = True
        self.is_closed = False
        session = server.open_session(self)
        session.standing = self
        self._session = self.session = session

    def feed(self, data: bytes) -> None:
        """Take what was read from the client."""
        for message in self._framing.feed(data):
            if message is None:
                self.reply(error_message(None, INVALID_REQUEST, "Invalid request: the message is too long"))
            else:
                self._server.receive(message, self)
        if len(self._session.running) >= MOST_IN_FLIGHT and self._is_reading:
            self._is_reading = False
            self._stream.pause_reading()

    def reply(self, message: bytes, code: int = 0) -> None:
        self._send(message)
        if not self._is_reading and len(self._session.running) < MOST_IN_FLIGHT:
            self._is_reading = True
            self._stream.resume_reading()

    def emit(self, message: bytes) -> None:
        self._send(message)

    async def drain(self) -> None:
        if not self._writable.is_set():
            await self._writable.wait()

    def pause_writing(self) -> None:
        """The client reads slower than we write: tools that emit wait, and no more requests are read."""
        self._writable.clear()
        self._stream.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._is_reading:
            self._stream.resume_reading()

    async def finish(self) -> None:
        """The client will send no more: let running calls end for a while, then close."""
        self._session.fail_questions(ConnectionError("the client closed its end"))
        for listening in [call for call in self._server.listening if call in self._session.running.values()]:
            listening.cancel("")
        running = self._session.running.values()
        tasks = [call.task for call in self._server.calls if call in running]
        if tasks:
            await asyncio.wait(tasks, timeout=END_GRACE_S)
        self._flush()
        self.close()

    def close(self) -> None:
        """End the connection and everything it runs."""
        if not self.is_closed:
            self.is_closed = True
            self._writable.set()
            self._server.close_session(self._session)
            self._stream.close()

    def _send(self, message: bytes) -> None:
        if self.is_closed:
            return
        self._outgoing.append(self._framing.wrap(message))
        if not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        if self._outgoing and not self.is_closed:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            self._stream.write(data)
            if self._stream.unread_bytes() > MOST_UNREAD_BYTES:
                self._stream.abort()
                self.close()
