"""An origin that misbehaves, a decrypting engine before it, a client that sees every byte; nothing is left of them."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.listener import ProxyEngine
from tests.support.leftovers import nothing_left
from tests.support.origins.origin import Handler, Line, Origin, origin
from tests.support.proxy_engine import FAST, Memory, Wire, proxy, tunnel, wire
from tests.support.proxy_lab import OURS, THEIRS, unfinished
from tests.support.waiting import until

SCHEMES = ["http", "https"]


@dataclass
class Stage:
    scheme: str
    there: Origin
    engine: ProxyEngine
    memory: Memory

    @property
    def authority(self) -> str:
        return f"localhost:{self.there.port}"

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Wire]:
        """A client's connection; over https after its CONNECT and handshake."""
        if self.scheme == "http":
            async with wire(self.engine) as made:
                yield made
            return
        async with tunnel(self.engine, self.authority) as made:
            await made.start_tls(trusting(), "localhost")
            yield made

    def request(self, *headers: str, method: str = "GET", path: str = "/", body: bytes = b"") -> bytes:
        """Absolute-form to the proxy, origin-form inside a tunnel."""
        target = path if self.scheme == "https" else f"http://{self.authority}{path}"
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.authority}", *headers]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=OURS.pem.decode())


@asynccontextmanager
async def stage(
    scheme: str, handle: Handler | None = None, config: EngineConfig = FAST, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Stage]:
    memory = Memory()
    context = (tls or THEIRS.context_for("localhost")) if scheme == "https" else None
    with tempfile.TemporaryDirectory() as directory:
        roots = Path(directory, "roots.pem")
        roots.write_bytes(THEIRS.pem)
        config = replace(config, ca_file=str(roots))
        async with nothing_left(), origin(handle, context) as there:
            async with proxy(config, memory, rules=NoRules(True), authority=OURS) as engine:
                yield Stage(scheme, there, engine, memory)
                await until(lambda: engine.connection_count == 0, lambda: f"{engine.connection_count} connections")
            await until(lambda: len(memory.done) == len(memory.flows), lambda: unfinished(memory))


def rst(writer: asyncio.StreamWriter) -> None:
    """End with RST, as a process that crashed or a middlebox does."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def sends(*parts: bytes, resets: bool = False) -> Handler:
    """Takes a request, says this, and ends the connection."""

    async def handle(line: Line) -> None:
        await line.request()
        for part in parts:
            await line.say(part)
        if resets:
            rst(line.writer)

    return handle


async def ended(line: Wire) -> bytes:
    """What came until the connection ended, in whatever way."""
    got = b""
    try:
        while part := await line.reader.read(65536):
            got += part
    except (ConnectionError, ssl.SSLError):
        pass
    return got
