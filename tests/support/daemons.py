"""A small daemon with something of everything, and a client that speaks bytes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dari.daemon.client import DaemonClient
from dari.daemon.methods import Method
from dari.daemon.paths import DaemonPaths
from dari.daemon.peer import ConnectedSocket, PeerCredentials, peer_credentials
from dari.daemon.server import DaemonServer
from dari.daemon.tokens import CLI, read_token

NAME = "demo"
DEMO_DAEMON = Path(__file__).with_name("demo_daemon.py")
COMMAND = (sys.executable, str(DEMO_DAEMON))


class Sum(msgspec.Struct):
    a: int
    b: int = 0
    label: str | UnsetType = UNSET


@dataclass
class Demo:
    """The service behind the test daemon. `demo.hold` and `demo.watch` wait for `release`."""

    error: BaseException | None = None
    result: object = None
    release: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    was_cancelled: bool = False
    echoed: list[object] = field(default_factory=list)

    async def echo(self, params: dict[str, object]) -> object:
        self.echoed.append(params)
        return params

    async def add(self, params: Sum) -> object:
        return {"sum": params.a + params.b}

    async def fail(self, _: dict[str, object]) -> object:
        assert self.error is not None
        raise self.error

    async def give(self, _: dict[str, object]) -> object:
        return self.result

    async def hold(self, _: dict[str, object]) -> object:
        self.entered.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        finally:
            self.left.set()
        return {"held": True}

    def methods(self) -> tuple[Method, ...]:
        return (
            Method("demo.echo", "read", self.echo),
            Method("demo.add", "read", self.add, Sum),
            Method("demo.fail", "read", self.fail),
            Method("demo.give", "read", self.give),
            Method("demo.hold", "control", self.hold),
            Method("demo.watch", "control", self.hold, ends_with_caller=True),
        )


@dataclass
class CountedPeers:
    """The kernel's answer, counted; or another uid, or none."""

    count: int = 0
    uid: int | None = None
    error: OSError | None = None

    def __call__(self, sock: ConnectedSocket) -> PeerCredentials:
        self.count += 1
        if self.error is not None:
            raise self.error
        peer = peer_credentials(sock)
        return peer if self.uid is None else PeerCredentials(self.uid, peer.gid, peer.pid)


def demo_daemon(run_dir: Path, demo: Demo | None = None, **options: Any) -> DaemonServer:
    paths = DaemonPaths(NAME, run_dir, socket=options.pop("socket", None))
    return DaemonServer(paths, (demo or Demo()).methods(), version="1.2.3", **options)


def demo_client(run_dir: Path, principal: str = "cli", **options: Any) -> DaemonClient:
    return DaemonClient(DaemonPaths(NAME, run_dir), principal, **options)


class Wire:
    """One connection, by the byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *messages: object) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.writer.write(line + b"\n")

    async def receive(self) -> Any:
        line = await self.reader.readuntil(b"\n")
        return json.loads(line)

    async def ask(self, message: object) -> Any:
        self.send(message)
        return await self.receive()

    async def call(self, method: str, **params: object) -> Any:
        return await self.ask({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    async def shake_hands(self, run_dir: Path, principal: str = "cli") -> Any:
        token = read_token(run_dir / f"{principal}.token")
        return await self.call("system.handshake", protocol_version=1, token=token)

    async def ended(self) -> bool:
        """Wait for the daemon's end of the connection; True when it sent nothing more."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def wire(run_dir: Path) -> AsyncIterator[Wire]:
    """A connection without a handshake."""
    reader, writer = await asyncio.open_unix_connection(run_dir / f"{NAME}.sock", limit=2**26)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()
        try:
            await writer.wait_closed()
        except OSError:
            pass


@asynccontextmanager
async def session(run_dir: Path, principal: str = CLI.name) -> AsyncIterator[Wire]:
    """A connection after its handshake."""
    async with wire(run_dir) as connection:
        assert "result" in await connection.shake_hands(run_dir, principal)
        yield connection


def code(reply: Any) -> int:
    return reply["error"]["code"]  # type: ignore[no-any-return]


async def until_idle() -> None:
    """Wait for every task but the caller's own: a daemon in this loop has one per connection."""
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


def wait_until_unlocked(path: Path) -> None:
    """Wait for the end of whoever holds the lock; the test's own deadline bounds it."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
