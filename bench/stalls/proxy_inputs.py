"""What a client or an origin of the proxy may send."""

import asyncio
import gzip
import struct
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.stalls.heartbeat import Stall, beside, sent

CHUNKS = 300_000
FRAMES = 300_000
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
# `GET / HTTP/2` of localhost, in HPACK without a table: an open stream that the frames below can name.
_HEADERS = b"\x82\x86\x84\x41\x09localhost"


def _frame(kind: int, payload: bytes = b"", *, stream: int = 0, flags: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _rapid_resets() -> bytes:
    return b"".join(
        _frame(1, _HEADERS, stream=number, flags=5) + _frame(3, b"\0\0\0\x08", stream=number)
        for number in range(1, 2 * FRAMES // 6, 2)
    )


FLOODS: dict[str, Callable[[], bytes]] = {
    "WINDOW_UPDATE": lambda: _frame(8, b"\0\0\0\x01") * FRAMES,
    "PING": lambda: _frame(6, b"12345678") * FRAMES,
    "SETTINGS": lambda: _frame(4, b"\0\x03\0\0\0\x64") * FRAMES,
    "PRIORITY": lambda: _frame(2, b"\0\0\0\0\x10", stream=1) * FRAMES,
    "empty DATA": lambda: _frame(1, b"\x83" + _HEADERS[1:], stream=1, flags=4) + _frame(0, stream=1) * FRAMES,
    "CONTINUATION": lambda: _frame(1, _HEADERS, stream=1) + _frame(9, b"\x40\x01a\x01b", stream=1) * FRAMES,
    "unknown frame": lambda: _frame(250, b"x") * FRAMES,
    "rapid reset": _rapid_resets,
}


@asynccontextmanager
async def _engine() -> AsyncIterator[int]:
    from dari.proxy.ca import CertificateAuthority
    from dari.proxy.engine.config import EngineConfig
    from dari.proxy.engine.hooks import NoRules
    from dari.proxy.engine.listener import ProxyEngine
    from dari.proxy.recording.bodies import BodyStore
    from dari.proxy.recording.recording import Recorder
    from dari.proxy.recording.ring import Ring

    with tempfile.TemporaryDirectory() as folder:
        bodies = BodyStore(Path(folder, "bodies"))
        authority, rules = CertificateAuthority.generate(), NoRules(True)
        recorder = Recorder(Ring(), bodies=bodies)
        engine = ProxyEngine(EngineConfig(port=0), recorder=recorder, rules=rules, authority=authority)
        await engine.start()
        try:
            assert engine.address is not None
            yield engine.address[1]
        finally:
            await engine.stop()


@asynccontextmanager
async def _origin(answer: bytes) -> AsyncIterator[int]:
    """Reads a head, then answers with these bytes, whatever comes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            reading = asyncio.create_task(_read(reader))
            for at in range(0, len(answer), 65536):
                writer.write(answer[at : at + 65536])
                await writer.drain()
            if answer:
                writer.close()
            await reading
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _read(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(65536):
            pass
    except OSError:
        pass


async def chunked_upload() -> Stall:
    async with _origin(b"") as origin, _engine() as port:
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (origin, origin)
        body = b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n"
        return await beside(lambda: sent(port, head + body, reads=False))


async def chunked_download() -> Stall:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n"
    return await _download(answer)


async def informational_responses() -> Stall:
    return await _download(b"HTTP/1.1 102 Processing\r\n\r\n" * CHUNKS)


async def _download(answer: bytes) -> Stall:
    async with _origin(answer) as origin, _engine() as port:
        asked = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
        return await beside(lambda: sent(port, asked % (origin, origin)))


async def pipelined_requests() -> Stall:
    async with _engine() as port:
        return await beside(lambda: sent(port, b"GET http://proxy.crab/ HTTP/1.1\r\nHost: proxy.crab\r\n\r\n" * 50_000))


async def websocket_frames() -> Stall:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    async with _origin(switch + b"\x00\x01x" * FRAMES) as origin, _engine() as port:
        return await beside(lambda: sent(port, _upgrade(origin)))


async def websocket_bombs() -> Stall:
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(4 * 1024 * 1024)) + packer.flush(zlib.Z_SYNC_FLUSH)
    frame = b"\xc2\x7e" + struct.pack(">H", len(packed) - 4) + packed[:-4]
    extension = b"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n"
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + extension + b"\r\n"
    async with _origin(switch + frame * 500) as origin, _engine() as port:
        return await beside(lambda: sent(port, _upgrade(origin)))


def _upgrade(origin: int) -> bytes:
    return (
        b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" % (origin, origin)
    )


async def h2_flood(name: str) -> Stall:
    import dari.proxy.engine.http2.client  # noqa: F401 - it takes as long as a flood, once

    async with _engine() as port:
        data = b"CONNECT localhost:9 HTTP/1.1\r\nHost: localhost:9\r\n\r\n" + _PREFACE + FLOODS[name]()
        return await beside(lambda: sent(port, data))


def bomb(coding: str, size_mb: int = 1024) -> bytes:
    """Text of `size_mb` that is wide in memory, in as few bytes as the coding makes of it."""
    import zlib

    piece, count = b'{"token=": "a", ' * 65_000 + "😀".encode() * 2_000, size_mb
    if coding == "zstd":
        import zstandard

        packer = zstandard.ZstdCompressor(level=3).compressobj()
        return b"".join(packer.compress(piece) for _ in range(count)) + packer.flush()
    if coding == "br":
        import brotli

        pressed = brotli.Compressor(quality=4)
        return b"".join(pressed.process(piece) for _ in range(count)) + pressed.finish()
    if coding == "gzip, gzip":
        return gzip.compress(bomb("gzip", size_mb))
    deflater = zlib.compressobj(6, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    return b"".join(deflater.compress(piece) for _ in range(count)) + deflater.flush()


async def four_views(coding: str) -> Stall:
    """Four agents look at one body at the same time."""
    from dari.proxy.api.traffic import TrafficApi
    from dari.proxy.flow import Flow
    from dari.proxy.query.filters import TrafficFilter
    from dari.proxy.runtime import ProxyRuntime

    with tempfile.TemporaryDirectory() as folder:
        runtime = await ProxyRuntime.open(Path(folder))
        traffic, api = runtime.recording, TrafficApi(runtime)
        flow = Flow(1, "127.0.0.1:1", 0, "GET", "http", "localhost", "/", "1.1", [])
        flow.response_headers = [(b"Content-Type", b"application/json"), (b"Content-Encoding", coding.encode())]
        flow.status = 200
        traffic.recorder.began(flow)
        data = bomb(coding, 64)
        for at in range(0, len(data), 65536):
            traffic.recorder.body(flow, False, data[at : at + 65536])
        flow.response_body.size_bytes = len(data)
        flow.response_body.sample = data[:4096]
        flow.response_body.outcome = "complete"
        flow.state = "done"
        traffic.recorder.finished(flow)

        async def look() -> None:
            views = [api.body(str(flow.id)) for _ in range(4)]
            await asyncio.gather(
                *views, api.search(TrafficFilter(body_contains="nothing")), api.diff(str(flow.id), str(flow.id))
            )

        try:
            return await beside(look)
        finally:
            await runtime.close()
