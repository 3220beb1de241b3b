"""Servers to talk to: ours in memory, ours in a process, one of the SDK, and ones that do as they are told."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.core.context import Elicited
from dari.core.scopes import MCP_GRANT
from dari.mcp.client import Client
from dari.mcp.client.callbacks import Elicitation, Sampled, Sampling
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.server import Server
from dari.mcp.session import Session
from dari.settings import ServeSettings
from dari.transport.client.lines import LineChannel
from dari.transport.server import McpListeners

ROOT = Path(__file__).parents[2]
DEMO = (sys.executable, "-m", "tests.support.demo_server")
DEMO_ENV = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
ERAS = ("handshake", "stateless")
Json = dict[str, Any]


class MemoryChannel(LineChannel):
    """Our server on the other side of a function call."""

    def __init__(self, server: Server) -> None:
        super().__init__(most_bytes=1024 * 1024)
        self._server = server

    async def open(self, inbox: Any) -> None:
        self._reset()
        self.inbox = inbox
        self._writer = self
        self._link = _MemoryLink(self._server, self)

    async def close(self) -> None:
        self.inbox = None
        self._server.close_session(self._link.session)

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            asyncio.get_running_loop().call_soon(self._server.receive, line, self._link)

    def is_closing(self) -> bool:
        return False


class _MemoryLink(ReplyChannel):
    def __init__(self, server: Server, channel: MemoryChannel) -> None:
        self.grant = MCP_GRANT
        self._channel = channel
        self.session: Session = server.open_session(self)
        self.session.standing = self

    def reply(self, message: bytes, code: int = 0) -> None:
        self.emit(message)

    def emit(self, message: bytes) -> None:
        asyncio.get_running_loop().call_soon(self._channel.data_received, message + b"\n")


def memory_client(server: Server, **options: Any) -> Client:
    return Client(MemoryChannel(server), **options)


class ScriptedChannel(LineChannel):
    """A server made of one function: it sees every message and sends what it likes, now or later."""

    def __init__(self, script: Callable[[ScriptedChannel, Json], object]) -> None:
        super().__init__(most_bytes=1024 * 1024)
        self._script = script
        self.sent: list[Json] = []
        self.openings = 0

    async def open(self, inbox: Any) -> None:
        self.openings += 1
        self._reset()
        self.inbox = inbox
        self._writer = self

    async def close(self) -> None:
        self.inbox = None

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            self.sent.append(message)
            self._script(self, message)

    def is_closing(self) -> bool:
        return False

    def send(self, message: Json | bytes) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        asyncio.get_running_loop().call_soon(self.data_received, data + b"\n")

    def reply(self, request: Json, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def refuse(self, request: Json, code: int, message: str = "no", data: Any = None) -> None:
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    def sent_methods(self) -> list[str]:
        return [message.get("method", "") for message in self.sent]


INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "script", "version": "1"}}
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}


def handshake_script(then: Callable[[ScriptedChannel, Json], object]) -> Callable[[ScriptedChannel, Json], None]:
    """Shakes hands; what comes after is the test's."""

    def script(channel: ScriptedChannel, message: Json) -> None:
        if message.get("method") == "initialize":
            channel.reply(message, INITIALIZED)
        elif message.get("method") != "notifications/initialized":
            then(channel, message)

    return script


@asynccontextmanager
async def serving(server: Server, **settings: Any) -> AsyncIterator[McpListeners]:
    """Our server on HTTP (and a socket, if one is named), in this process."""
    hub = McpListeners(server, ServeSettings(transport="http", http_port=0, **settings), MCP_GRANT)
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()


Handler = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One connection to a scripted HTTP server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.method = ""
        self.target = ""
        self.headers: dict[str, str] = {}
        self.body: Json = {}

    async def request(self) -> bool:
        """Read one; False when the client has hung up."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        first, *lines = head.rstrip().split("\r\n")
        self.method, self.target, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        size = int(self.headers.get("content-length", "0"))
        body = await self.reader.readexactly(size)
        self.body = json.loads(body) if body.startswith(b"{") else {}
        return True

    def respond(self, status: int, body: bytes = b"", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def reply(self, result: Any, **headers: str) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": self.body["id"], "result": result}).encode()
        self.respond(200, body, content_type="application/json", **headers)

    def stream(self, **headers: str) -> None:
        lines = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        self.chunk(b"")

    def answer(self, result: Any, event_id: str = "") -> bytes:
        """The answer to the current request as an event."""
        message = json.dumps({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
        return (f"id: {event_id}\n" if event_id else "").encode() + f"data: {message}\n\n".encode()

    def initialized(self, session: str = "s1") -> bool:
        """Take part in the handshake of a session; False when the request is something else."""
        method = self.body.get("method")
        if method == "initialize":
            self.reply(INITIALIZED, mcp_session_id=session)
        elif method == "notifications/initialized":
            self.respond(202)
        elif self.method == "DELETE":
            self.respond(200)
        else:
            return False
        return True


@asynccontextmanager
async def http_script(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server whose every connection is run by `handler`; the URL of its endpoint."""
    count = 0
    failures: list[Exception] = []
    peers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        task = asyncio.current_task()
        assert task is not None
        peers.add(task)
        try:
            await handler(Peer(reader, writer, count))
        except (ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            failures.append(error)
        finally:
            peers.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for task in list(peers):
            task.cancel()
        await asyncio.gather(*peers, return_exceptions=True)
        await server.wait_closed()
    assert not failures, failures


async def say_yes(question: Elicitation) -> Elicited:
    names = question.requested_schema.get("properties", {})
    return Elicited("accept", dict.fromkeys(names, "Ada"))


async def four(question: Sampling) -> Sampled:
    return Sampled("test-model", {"type": "text", "text": "4"})


async def two_folders() -> list[str]:
    return ["file:///a", "file:///b"]
