"""Raw JSON-RPC over every transport: what is sent is what the test says, byte for byte.

Each wire is an async context manager that yields something with `ask(message) -> reply`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from dari.core.scopes import MCP_GRANT
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.server import Server
from dari.rpc.framing import Framing

ROOT = Path(__file__).parents[2]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
Json = dict[str, Any]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Wire(Protocol):
    async def ask(self, message: Json) -> Json: ...


def stateless(message: Json, **capabilities: Any) -> Json:
    """The same request with the envelope of the stateless era."""
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}
    params = message.get("params", {})
    return {**message, "params": {**params, "_meta": {**params.get("_meta", {}), **meta}}}


def initialize(version: str = "2025-11-25", **capabilities: Any) -> Json:
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}


def call(name: str, request_id: int | str = 1, /, **arguments: Any) -> Json:
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


class MemoryWire(ReplyChannel):
    """A link without bytes below it."""

    def __init__(self, server: Server) -> None:
        self.grant = MCP_GRANT
        self.messages: asyncio.Queue[Json] = asyncio.Queue()
        self._server = server
        self.session = server.open_session(self)
        self.session.standing = self

    def reply(self, message: bytes, code: int = 0) -> None:
        self.messages.put_nowait(json.loads(message))

    def emit(self, message: bytes) -> None:
        self.messages.put_nowait(json.loads(message))

    def send(self, message: Json) -> None:
        self._server.receive(json.dumps(message).encode(), self)

    async def ask(self, message: Json) -> Json:
        self.send(message)
        return await self.messages.get()


class StreamWire:
    """Newline or Content-Length framing over a reader and a writer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, lsp: bool = False) -> None:
        self.reader = reader
        self.writer = writer
        self._framing = Framing()
        self._framing.is_lsp = lsp
        self._framing._decided = True
        self._ready: list[Json] = []

    def send(self, message: Json | bytes) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.writer.write(self._framing.wrap(body))

    async def receive(self) -> Json:
        while not self._ready:
            data = await self.reader.read(65536)
            if not data:
                raise EOFError("the server closed the connection")
            self._ready += [json.loads(message) for message in self._framing.feed(data) if message]
        return self._ready.pop(0)

    async def ask(self, message: Json) -> Json:
        self.send(message)
        await self.writer.drain()
        return await self.receive()


class HttpReply:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Json:
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return self.events()[-1]
        return dict(json.loads(self.body))

    def events(self) -> list[Json]:
        return [json.loads(line[6:]) for line in self.body.decode().splitlines() if line.startswith("data: {")]


class HttpWire:
    """One keep-alive HTTP connection, written by hand so that nothing is normalised on the way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str = "") -> None:
        self.reader = reader
        self.writer = writer
        self.headers = {
            "Host": "localhost",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    async def ask(self, message: Json) -> Json:
        """Post a message the way a client of its era does."""
        reply = await self.post(message)
        if session := reply.headers.get("mcp-session-id"):
            self.headers["Mcp-Session-Id"] = session
        return reply.json()

    async def post(self, message: Json | bytes, **headers: str) -> HttpReply:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        extra = envelope_headers(message) if isinstance(message, dict) else {}
        return await self.request("POST", "/mcp", body, {**extra, **headers})

    async def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> HttpReply:
        self.send(method, path, body, headers)
        return await self.receive()

    def send(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        shown = {**self.headers, **{name.replace("_", "-"): value for name, value in (headers or {}).items()}}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in shown.items() if value)]
        if body or method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def head(self) -> tuple[int, dict[str, str]]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status_line, *lines = head.split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        return int(status_line.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def receive(self) -> HttpReply:
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while chunk := await self.chunk():
                body += chunk
            return HttpReply(status, headers, body)
        return HttpReply(status, headers, await self.reader.readexactly(int(headers.get("content-length", "0"))))

    async def chunk(self) -> bytes:
        """The next part of a stream; empty at its end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]


def envelope_headers(message: Json) -> dict[str, str]:
    params = message.get("params") or {}
    version = (params.get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion")
    if version is None:
        return {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": message["method"]}
    name = params.get("uri") if message["method"] == "resources/read" else params.get("name")
    if isinstance(name, str):
        headers["Mcp-Name"] = name
    return headers


class DemoProcess:
    """The demo server in a process of its own, on every transport at once."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, socket: Path, token: str) -> None:
        self.process = process
        self.port = port
        self.socket = socket
        self.token = token
        self._writers: list[asyncio.StreamWriter] = []

    def stdio(self, *, lsp: bool = False) -> StreamWire:
        assert self.process.stdin and self.process.stdout
        return StreamWire(self.process.stdout, self.process.stdin, lsp=lsp)

    async def http(self) -> HttpWire:
        return HttpWire(*self._kept(await asyncio.open_connection("127.0.0.1", self.port)), token=self.token)

    async def unix(self) -> StreamWire:
        return StreamWire(*self._kept(await asyncio.open_unix_connection(str(self.socket))))

    async def http_on_unix(self) -> HttpWire:
        return HttpWire(*self._kept(await asyncio.open_unix_connection(str(self.socket))))

    def _kept(self, streams: Streams) -> Streams:
        self._writers.append(streams[1])
        return streams

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        for writer in self._writers:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()
        self.process._transport.close()  # type: ignore[attr-defined]


@asynccontextmanager
async def demo_process(
    directory: Path, *options: str, module: str = "tests.support.demo_server", transport: str = "both"
) -> AsyncIterator[DemoProcess]:
    """Start the demo (or another module with the same options) and wait until it listens."""
    token_path, socket = directory / "token", directory / "s" / "mcp.sock"
    (directory / "s").mkdir(mode=0o700, exist_ok=True)
    arguments = ["--transport", transport, "--http-port", "0", "--token-path", str(token_path), "--socket", str(socket)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module, *arguments, *options),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 * 1024 * 1024,
    )
    server = DemoProcess(process, 0, socket, "")
    try:
        server.port = await _port_of(process)
        server.token = token_path.read_text().strip() if token_path.exists() else ""
        yield server
    finally:
        await server.close()


async def _port_of(process: asyncio.subprocess.Process) -> int:
    assert process.stderr
    seen = ""
    while line := (await process.stderr.readline()).decode():
        seen += line
        if found := re.search(r"event=start url=http://[^:]+:(\d+)/mcp", line):
            return int(found[1])
    raise AssertionError(f"the server did not start:\n{seen}")
