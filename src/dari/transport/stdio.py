"""Serve one client over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from dari.core.scopes import Grant
from dari.mcp.server import Server
from dari.transport.lines import LineReplyChannel

FLUSH_S = 2.0
"""A client that takes nothing for so long has what it gets."""
_CHUNK_BYTES = 256 * 1024


class _Pipes(asyncio.Protocol):
    """Joins the reading and the writing pipe to one channel."""

    def __init__(self, server: Server, grant: Grant, output: BinaryIO, ended: asyncio.Event) -> None:
        self.ended = ended
        self.reader: asyncio.ReadTransport | None = None
        self.writer: asyncio.WriteTransport | None = None
        self._output = output
        self.channel = LineReplyChannel(server, grant, self, "stdio")

    def data_received(self, data: bytes) -> None:
        self.channel.feed(data)

    def eof_received(self) -> None:
        self.ended.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set()

    def pause_writing(self) -> None:
        self.channel.pause_writing()

    def resume_writing(self) -> None:
        self.channel.resume_writing()

    def write(self, data: bytes) -> None:
        if self.writer is not None:
            self.writer.write(data)
            return
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._output.write(rest) :]
        except OSError:
            self.channel.close()
            self.ended.set()

    def unread_bytes(self) -> int:
        return 0 if self.writer is None else self.writer.get_write_buffer_size()

    def pause_reading(self) -> None:
        if self.reader is not None and not self.reader.is_closing():
            self.reader.pause_reading()

    def resume_reading(self) -> None:
        if self.reader is not None and not self.reader.is_closing():
            self.reader.resume_reading()

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()

    def abort(self) -> None:
        if self.writer is not None:
            self.writer.abort()


class _WriteEnd(asyncio.BaseProtocol):
    """Flow control of the writing pipe. Its loss means that nobody reads any more: the end, at once."""

    def __init__(self, pipes: _Pipes) -> None:
        self._pipes = pipes
        self.lost = asyncio.Event()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self._pipes.channel.close()
        self._pipes.ended.set()

    def pause_writing(self) -> None:
        self._pipes.channel.pause_writing()

    def resume_writing(self) -> None:
        self._pipes.channel.resume_writing()


async def serve_stdio(server: Server, grant: Grant, ended: asyncio.Event | None = None, head: bytes = b"") -> None:
    """Serve until the client closes stdin or `ended` is set; what runs then may finish.

    `head` was read from stdin already.
    """
    with _own_pipes() as (source, sink):
        loop = asyncio.get_running_loop()
        pipes = _Pipes(server, grant, sink, ended or asyncio.Event())
        write_end = _WriteEnd(pipes)
        if _can_poll(sink):
            pipes.writer, _ = await loop.connect_write_pipe(lambda: write_end, sink)
        try:
            pipes.channel.feed(head)
            if _can_poll(source):
                pipes.reader, _ = await loop.connect_read_pipe(lambda: pipes, source)
                await pipes.ended.wait()
            else:
                await _feed_file(pipes, source)
            await pipes.channel.finish()
        finally:
            pipes.channel.close()
            pipes.close()
            if pipes.writer is not None and not write_end.lost.is_set():
                await _flush(pipes.writer, write_end)


async def _flush(writer: asyncio.WriteTransport, end: _WriteEnd) -> None:
    """Write what is left for as long as the client takes something of it."""
    writer.close()
    left = writer.get_write_buffer_size() + 1
    while not end.lost.is_set():
        if (now_left := writer.get_write_buffer_size()) >= left:
            writer.abort()
            return
        left = now_left
        try:
            async with asyncio.timeout(FLUSH_S):
                await end.lost.wait()
        except TimeoutError:
            pass


async def _feed_file(pipes: _Pipes, source: BinaryIO) -> None:
    """A regular file cannot be polled; it cannot block for long either."""
    while not pipes.ended.is_set() and (data := await asyncio.to_thread(os.read, source.fileno(), _CHUNK_BYTES)):
        pipes.channel.feed(data)
        await pipes.channel.drain()


def _can_poll(file: BinaryIO) -> bool:
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISCHR(mode):
        return os.isatty(file.fileno())
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _own_pipes() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Take file descriptors 0 and 1 for the protocol: a stray print goes to stderr, a child reads /dev/null."""
    if sys.stdout is not None:
        sys.stdout.flush()
    source, sink = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    blocking = [(file.fileno(), os.get_blocking(file.fileno())) for file in (source, sink)]
    kept = [(os.dup(fd), blocks) for fd, blocks in blocking]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield source, sink
    finally:
        for file in (source, sink):
            file.close()
        # A terminal is shared with the shell that started us, which expects it to block.
        for fd, blocks in kept:
            os.set_blocking(fd, blocks)
            os.close(fd)
