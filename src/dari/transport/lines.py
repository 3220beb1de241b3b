"""One client on a byte stream (stdin/stdout, a Unix socket): framing, back-pressure, orderly end."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from dari.core.scopes import Grant
from dari.core.slices import Sliced
from dari.log import format_event
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.server import Server
from dari.rpc.codec import INTERNAL_ERROR, INVALID_REQUEST, error_message
from dari.rpc.framing import Framing

MAX_IN_FLIGHT = 512
MAX_UNREAD_BYTES = 64 * 1024 * 1024
FLUSH_BYTES = 64 * 1024
END_GRACE_S = 5.0

_log = logging.getLogger("dari.transport")


class ByteStream(Protocol):
    """What the channel needs of an asyncio transport pair."""

    def write(self, data: bytes) -> None: ...
    def unread_bytes(self) -> int: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class LineReplyChannel(ReplyChannel):
    """Serves every message that is fed; replies leave together, once per turn of the event loop."""

    def __init__(self, server: Server, grant: Grant, stream: ByteStream, transport: str) -> None:
        self.transport = transport
        self.grant = grant
        self._server = server
        self._stream = stream
        self._framing = Framing()
        self._loop = asyncio.get_running_loop()
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._flush_planned = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_reading = True
        self._is_feeding = False
        self._messages: Sliced[bytes | None] = Sliced(self._handle, stream.pause_reading, self._resume)
        self._is_finishing = False
        self.is_closed = False
        session = server.open_session(self)
        session.standing = self
        self._session = self.session = session

    def feed(self, data: bytes) -> None:
        """Take what was read from the client."""
        if self.is_closed or self._is_finishing:
            return
        self._is_feeding = True
        self._messages.take(self._framing.feed(data))
        self._is_feeding = False
        self._flush()
        if len(self._session.running) >= MAX_IN_FLIGHT and self._is_reading:
            self._is_reading = False
            self._stream.pause_reading()

    def reply(self, message: bytes, code: int = 0) -> None:
        self._send(message)
        self._read_on()

    def abandon(self, message: bytes) -> None:
        self._read_on()

    def emit(self, message: bytes) -> None:
        self._send(message)

    async def drain(self) -> None:
        # A tool that reports in a loop never lets the planned flush run, so it has to happen here.
        if self._outgoing_bytes > FLUSH_BYTES:
            self._flush()
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

    async def finish(self, grace_s: float = END_GRACE_S) -> None:
        """The client will send no more: let running calls end for a while, then close."""
        if not self._framing.is_lsp:
            self.feed(b"\n")  # The last line of `printf … | dari mcp` has no end of its own.
        await self._messages.handled()
        self._is_finishing = True
        self._session.fail_questions(ConnectionError("the client closed its end"))
        for listening in [call for call in self._server.listening if call in self._session.running.values()]:
            listening.cancel("")
        running = self._session.running.values()
        tasks = [call.task for call in self._server.calls if call in running]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)
        self._flush()
        self.close()

    def close(self) -> None:
        """End the connection and everything it runs."""
        if not self.is_closed:
            self.is_closed = True
            self._writable.set()
            self._messages.clear()
            self._server.close_session(self._session)
            self._stream.close()

    def _handle(self, message: bytes | None) -> None:
        if self.is_closed:
            return
        if message is None:
            self.reply(error_message(None, INVALID_REQUEST, "Invalid request: the message is too long"))
        else:
            self._receive(message)

    def _resume(self) -> None:
        """All that was read is handled: read on, unless the client has first to take what we wrote."""
        if self._is_reading and self._writable.is_set() and not self.is_closed:
            self._stream.resume_reading()

    def _receive(self, message: bytes) -> None:
        try:
            self._server.receive(message, self)
        except Exception as error:
            _log.exception(format_event(self.transport, "fatal"))
            self.reply(error_message(None, INTERNAL_ERROR, f"Internal error: {type(error).__name__}: {error}"))

    def _read_on(self) -> None:
        """Fewer calls run than may: read again, unless the client has first to take what we wrote."""
        if not self._is_reading and len(self._session.running) < MAX_IN_FLIGHT:
            self._is_reading = True
            if self._writable.is_set():
                self._stream.resume_reading()

    def _send(self, message: bytes) -> None:
        if self.is_closed:
            return
        self._outgoing.append(self._framing.wrap(message))
        self._outgoing_bytes += len(message)
        if self._is_feeding:
            return
        if not self._session.running and len(self._outgoing) == 1:
            # Nothing else is under way, so nothing else is likely to leave in this turn: do not wait for its end.
            self._flush()
        elif not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        if self._outgoing and not self.is_closed:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            self._outgoing_bytes = 0
            if self._stream.unread_bytes() > MAX_UNREAD_BYTES:
                self._stream.abort()
                self.close()
            else:
                self._stream.write(data)
