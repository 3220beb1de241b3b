"""An origin with something for every client: echo, chunks, a large file, events, a page, a WebSocket.

/hello         ten bytes                    /echo      JSON of what arrived (answers 100-continue)
/chunked       three chunks and a trailer   /big?N     N MiB of `pattern`
/events        one event, and another after `release`  (or a request for /release)
/endless       bytes until the other side goes
/page          HTML that uses all of it     /image.png 2 x 3 pixels
/ws            echoes messages, with permessage-deflate
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from tests.support.origins.origin import Line, Seen

MIB = 1 << 20
_PAGE = Path(__file__).with_name("page.html")
_BLOCK = random.Random(7).randbytes(MIB - 8)


def pattern(index: int) -> bytes:
    """The MiB with this number; each differs from the others."""
    return struct.pack(">Q", index) + _BLOCK


def pattern_sha256(count: int) -> str:
    total = hashlib.sha256()
    for index in range(count):
        total.update(pattern(index))
    return total.hexdigest()


def payload(seen: Seen) -> bytes:
    """The request's body without its chunks."""
    if not seen.header("transfer-encoding"):
        return seen.body
    rest, parts = seen.body, []
    while True:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        if not size:
            return b"".join(parts)
        parts.append(rest[:size])
        rest = rest[size + 2 :]


class Site:
    def __init__(self) -> None:
        self.release = asyncio.Event()
        """Lets /events go on."""
        self.has_ended_early: list[str] = []
        """Paths whose response the other side did not take to its end."""

    async def __call__(self, line: Line) -> None:
        while (seen := await line.head()) is not None:
            method, target, version = seen.head.split(b"\r\n")[0].decode().split(" ")
            if target == "/refuse":
                await line.say(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n")
                while await line.reader.read(65536):
                    pass
                return
            if seen.header("expect"):
                await line.say(b"HTTP/1.1 100 Continue\r\n\r\n")
            await line.body(seen)
            line.origin.requests.append(seen)
            path, _, query = target.partition("?")
            if path == "/ws":
                await _websocket(line, seen)
                return
            try:
                await self._answer(line, seen, method, path, query)
            except ConnectionError:
                self.has_ended_early.append(path)
                raise
            if seen.header("connection") == "close" or version == "HTTP/1.0":
                return

    async def _answer(self, line: Line, seen: Seen, method: str, path: str, query: str) -> None:
        say: dict[str, Callable[[], bytes]] = {
            "/hello": lambda: _text("0123456789", "text/plain"),
            "/chunked": lambda: _CHUNKED,
            "/echo": lambda: _text(_echo(seen, method), "application/json"),
            "/page": lambda: _text(_PAGE.read_text(), "text/html; charset=utf-8"),
            "/image.png": lambda: _whole(_png(2, 3), "image/png"),
            "/release": lambda: _text("released", "text/plain"),
        }
        if path == "/release":
            self.release.set()
        if path == "/big":
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (int(query) * MIB))
            for index in range(int(query)):
                await line.say(pattern(index))
        elif path == "/endless":
            await line.say(b"HTTP/1.1 200 OK\r\n\r\n")
            while not line.writer.is_closing():
                await line.say(_BLOCK)
                # uvloop's TLS transport takes writes without a pause after its peer is gone, and never says so.
                await asyncio.sleep(0)
            self.has_ended_early.append(path)
        elif path == "/events":
            await line.say(_EVENTS + _chunk(b"data: one\n\n"))
            await self._released(line)
            await line.say(_chunk(b"data: two\n\n") + b"0\r\n\r\n")
        elif path in say:
            data = say[path]()
            await line.say(data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else data)
        else:
            await line.say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    async def _released(self, line: Line) -> None:
        release, end = asyncio.ensure_future(self.release.wait()), asyncio.ensure_future(line.reader.read(1))
        await asyncio.wait([release, end], return_when=asyncio.FIRST_COMPLETED)
        is_gone = not release.done()
        for waiting in (release, end):
            waiting.cancel()
        await asyncio.gather(release, end, return_exceptions=True)
        if is_gone:
            raise ConnectionResetError("nobody listens any more")


async def _websocket(line: Line, seen: Seen) -> None:
    protocol = ServerProtocol(extensions=[ServerPerMessageDeflateFactory()])
    protocol.receive_data(seen.head)
    request = protocol.events_received()[0]
    assert isinstance(request, Request)
    protocol.send_response(protocol.accept(request))
    kind, parts = Opcode.TEXT, b""
    while True:
        for data in protocol.data_to_send():
            if not data:
                return  # the end of our direction, after both Close frames
            await line.say(data)
        if not (data := await line.reader.read(65536)):
            return
        protocol.receive_data(data)
        for frame in protocol.events_received():
            if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
                kind, parts = frame.opcode, b""
            elif frame.opcode is not Opcode.CONT:
                continue  # answered by the protocol itself
            parts += frame.data
            if frame.fin:
                (protocol.send_text if kind is Opcode.TEXT else protocol.send_binary)(parts)


def _echo(seen: Seen, method: str) -> str:
    body = payload(seen)
    lines = seen.head.decode("latin-1").split("\r\n")
    headers = [[name.lower(), value.strip()] for name, _, value in (line.partition(":") for line in lines[1:]) if name]
    digest = hashlib.sha256(body).hexdigest()
    return json.dumps({"line": lines[0], "method": method, "headers": headers, "size": len(body), "sha256": digest})


def _text(text: str, kind: str) -> bytes:
    return _whole(text.encode(), kind)


def _whole(body: bytes, kind: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    b"5\r\nthree\r\n1\r\n \r\n6\r\nchunks\r\n0\r\nX-Sum: 12\r\n\r\n"
)
_EVENTS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _png(width: int, height: int) -> bytes:
    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + b"\xff\x80\x00" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
