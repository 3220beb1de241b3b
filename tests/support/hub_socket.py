"""A socket with commands of the test's own, and a client that speaks its bytes."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.bridge.config.locations import ClientEnvironment
from dari.cli.hub import protocol
from dari.cli.hub.server import CliSocketServer
from dari.cli.hub.socket_console import SocketConsole
from dari.mcp.server import Server
from dari.version import VERSION
from tests.support.demo_server import demo_server
from tests.support.waiting import until

Json = dict[str, Any]


class Commands:
    """`run` is a command for every case; events tell how far it is."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.release = asyncio.Event()
        self.around: ClientEnvironment | None = None
        self.program = ""
        self.argv: list[str] = []
        self.terminal: SocketConsole | None = None
        self.printed = 0

    async def run(self, program: str, argv: list[str], terminal: SocketConsole, around: ClientEnvironment) -> int:
        self.program, self.argv, self.terminal, self.around = program, argv, terminal, around
        self.entered.set()
        try:
            return await getattr(self, f"do_{argv[0]}")(terminal, *argv[1:])
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def do_say(self, terminal: SocketConsole, out: str, err: str, code: str) -> int:
        terminal.out(out)
        terminal.err(err)
        terminal.out(out)
        return int(code)

    async def do_wait(self, terminal: SocketConsole) -> int:
        await self.release.wait()
        return 0

    async def do_stdin(self, terminal: SocketConsole) -> int:
        terminal.out(f"{len(await terminal.read_stdin())} {len(await terminal.read_stdin())}")
        return 0

    async def do_ask(self, terminal: SocketConsole, prompt: str) -> int:
        terminal.out(f"<{await terminal.ask(prompt)}> <{await terminal.ask(prompt, secret=True)}>")
        return 0

    async def do_flood(self, terminal: SocketConsole, piece_bytes: str) -> int:
        """Prints for ever, and waits for its reader."""
        piece = "x" * int(piece_bytes)
        while True:
            terminal.out(piece)
            self.printed += len(piece)
            await terminal.drain()

    async def do_rush(self, terminal: SocketConsole, piece_bytes: str) -> int:
        """Prints for ever, and waits for nobody."""
        piece = "x" * int(piece_bytes)
        while True:
            terminal.out(piece)
            self.printed += len(piece)
            await asyncio.sleep(0)

    async def do_crash(self, terminal: SocketConsole) -> int:
        raise RuntimeError("a bug")


class SocketCaller:
    """One connection to the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def frame(self) -> tuple[bytes, bytes]:
        head = await self.reader.readexactly(protocol.HEADER_BYTES)
        return head[:1], await self.reader.readexactly(int.from_bytes(head[1:], "big"))

    async def frames(self) -> list[tuple[bytes, bytes]]:
        """All up to the end."""
        found = []
        try:
            while True:
                found.append(await self.frame())
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return found

    async def refusal(self) -> Json:
        kind, payload = await self.frame()
        assert kind == protocol.REFUSED, (kind, payload)
        assert await self.reader.read() == b"", "the socket hangs up after a refusal"
        said: Json = json.loads(payload)
        return said

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.writer.write(protocol.encode_frame(kind, payload))

    def vanish(self) -> None:
        self.writer.transport.abort()


def hello(run_dir: Path, *argv: str, **changes: Any) -> Json:
    """A good one, unless changed."""
    return {
        "v": protocol.PROTOCOL_VERSION,
        "token": protocol.read_token(str(run_dir)),
        "purpose": "cli",
        "version": VERSION,
        "package": protocol.PACKAGE,
        "program": "test",
        "argv": list(argv),
        "cwd": str(run_dir),
        "env": {"HOME": str(run_dir)},
        "tty": {"stdin": True, "stdout": False, "stderr": True, "columns": 99},
        **changes,
    }


@asynccontextmanager
async def connected(run_dir: Path) -> AsyncIterator[SocketCaller]:
    reader, writer = await asyncio.open_unix_connection(str(run_dir / protocol.SOCKET_NAME), limit=64 * 1024)
    caller = SocketCaller(reader, writer)
    try:
        yield caller
    finally:
        writer.transport.abort()


@asynccontextmanager
async def calling(run_dir: Path, *argv: str, **changes: Any) -> AsyncIterator[SocketCaller]:
    """Past BEGIN."""
    async with connected(run_dir) as caller:
        caller.writer.write(json.dumps(hello(run_dir, *argv, **changes)).encode() + b"\n")
        assert await caller.frame() == (protocol.BEGIN, str(os.getpid()).encode())
        yield caller


@asynccontextmanager
async def make_server(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
    server = demo_server()
    try:
        yield server
    finally:
        server.close()


@asynccontextmanager
async def open_socket(
    run_dir: Path, commands: Commands | None = None, **settings: Any
) -> AsyncIterator[CliSocketServer]:
    settings = {"run_command": (commands or Commands()).run, "make_server": make_server, **settings}
    async with CliSocketServer(run_dir, **settings) as socket:
        yield socket


async def empty(socket: CliSocketServer) -> None:
    """Return when the last caller has left."""
    await until(lambda: not socket.connections)
