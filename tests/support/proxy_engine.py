"""A running engine, a recorder that remembers, and a client that speaks raw bytes."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.hooks import PASS, Decision
from dari.proxy.engine.listener import ProxyEngine
from dari.proxy.flow import Flow, WebSocketFrame

# A loaded machine must not turn a client that is slow to begin TLS into one that waits for the server.
FAST = EngineConfig(port=0, tick_s=0.02, linger_s=5.0, sniff_s=10.0)


class Fixed:
    """Rules that decide the same for every request."""

    def __init__(self, decision: Decision = PASS, statuses: dict[int, int] | None = None) -> None:
        self.decision = Decision() if statuses and decision is PASS else decision  # PASS leaves statuses alone
        self.statuses = statuses or {}

    def decide(self, flow: Flow) -> Decision:
        return self.decision

    def respond(self, flow: Flow, status: int) -> int:
        return self.statuses.get(status, status)


class Memory:
    """A recorder whose flows can be waited for."""

    def __init__(self, spools: bool = False) -> None:
        self.spools = spools
        self.flows: list[Flow] = []
        self.done: list[Flow] = []
        self.up = b""
        self.down = b""
        self.frames: list[WebSocketFrame] = []
        self._changed = asyncio.Event()

    def began(self, flow: Flow) -> None:
        self.flows.append(flow)
        self._changed.set()

    def body(self, flow: Flow, from_client: bool, chunk: bytes) -> None:
        if from_client:
            self.up += chunk
        else:
            self.down += chunk

    def frame(self, flow: Flow, frame: WebSocketFrame) -> None:
        self.frames.append(frame)
        self._changed.set()

    def finished(self, flow: Flow) -> None:
        self.done.append(flow)
        self._changed.set()

    async def flow(self, count: int = 1) -> Flow:
        """The newest flow, once so many are finished."""
        await self.until(lambda: len(self.done) >= count)
        return self.done[-1]

    async def until_begun(self, count: int) -> None:
        await self.until(lambda: len(self.flows) >= count)

    async def until(self, is_so: Any) -> None:
        while not is_so():
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def proxy(
    config: EngineConfig = FAST, recorder: Memory | None = None, **ports: Any
) -> AsyncIterator[ProxyEngine]:
    engine = ProxyEngine(replace(config, port=0), recorder=recorder, **ports)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


@dataclass
class Reply:
    status: int
    head: bytes
    body: bytes
    trailers: bytes = b""

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name.lower().encode():
                return value.strip().decode("latin-1")
        return None


class Wire:
    """A client's connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *data: bytes) -> None:
        for part in data:
            self.writer.write(part)
            await self.writer.drain()

    async def head(self) -> Reply:
        data = await self.reader.readuntil(b"\r\n\r\n")
        return Reply(int(data.split(b" ")[1]), data, b"")

    async def reply(self, method: str = "GET") -> Reply:
        """One response with its body, as a strict client reads it."""
        reply = await self.head()
        if method == "HEAD" or reply.status < 200 or reply.status in (204, 304):
            return reply
        if (length := reply.header("content-length")) is not None:
            reply.body = await self.reader.readexactly(int(length))
        elif reply.header("transfer-encoding") == "chunked":
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                reply.body += (await self.reader.readexactly(size + 2))[:-2]
            while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
                reply.trailers += line
        else:
            reply.body = await self.reader.read()
        return reply

    async def rest(self) -> bytes:
        """Everything until the connection ends; raises ConnectionResetError for RST."""
        return await self.reader.read()

    async def get(self, url: str, *headers: str) -> Reply:
        await self.send(request(url, *headers))
        return await self.reply()

    async def is_open(self, url: str) -> bool:
        """Whether another request is served."""
        try:
            return (await self.get(url)).status == 200
        except (asyncio.IncompleteReadError, ConnectionError):
            return False

    async def start_tls(self, context: ssl.SSLContext, name: str) -> None:
        await self.writer.start_tls(context, server_hostname=name)

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Vanish with RST; a FIN would only say that nothing more is sent."""
        sock = self.writer.get_extra_info("socket")
        if sock is not None:  # else it has been closed already, by the other side
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def request(url: str, *headers: str, method: str = "GET", version: str = "1.1", body: bytes = b"") -> bytes:
    host = url.split("/")[2] if "://" in url else url
    lines = [f"{method} {url} HTTP/{version}", f"Host: {host}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@asynccontextmanager
async def wire(engine: ProxyEngine, address: tuple[str, int] | None = None) -> AsyncIterator[Wire]:
    host, port = address or engine.address or ("", 0)
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    made = Wire(reader, writer)
    try:
        yield made
    finally:
        writer.transport.abort()


@asynccontextmanager
async def tunnel(engine: ProxyEngine, authority: str) -> AsyncIterator[Wire]:
    async with wire(engine) as line:
        await line.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        reply = await line.head()
        assert reply.status == 200, reply
        yield line


async def jumped(engine: ProxyEngine, by_s: float = 3600.0) -> None:
    """Let the engine's clock jump, so that every limit that runs has passed, and wait until it has looked at it."""
    core = engine._core
    assert core is not None
    clock = core.clock
    async with wire(engine) as idle:
        await idle.get("http://proxy.crab/")
        core.clock = lambda: clock() + by_s
        assert await idle.rest() == b""
