"""`cruxd` and `crux-mcp-bridge` as processes, each in a home of its own that is gone afterwards."""

from __future__ import annotations

import asyncio
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dari.daemon.lock import lock_holder
from dari.terminal.paths import CruxPaths
from tests.support.real_clients import DARI
from tests.support.wire import HttpWire, Json, StreamWire, initialize

CRUXD = (str(DARI.with_name("cruxd")),)
BRIDGE = (str(DARI.with_name("crux-mcp-bridge")),)


@dataclass(frozen=True)
class Home:
    path: Path

    @property
    def place(self) -> CruxPaths:
        return CruxPaths(self.path / ".crux" / "mcp.sock")

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.path), "SHELL": "/bin/bash", "LANG": "C.UTF-8"}

    @property
    def daemon_pid(self) -> int | None:
        """The daemon that serves here now."""
        return lock_holder(self.place.lock)


@contextmanager
def new_home() -> Iterator[Home]:
    """Short, as a socket path has to be; a daemon that was started there is ended with it."""
    home = Home(Path(tempfile.mkdtemp(prefix="crux-")))
    try:
        yield home
    finally:
        # A call that a person has to approve starts the hub; without one this ends nothing.
        stop = [str(Path(sys.executable).with_name("dari")), "remote", "daemon", "stop"]
        subprocess.run(stop, env=home.env, capture_output=True, timeout=60, check=False)
        pid = home.daemon_pid
        if pid is not None:
            _end(pid)
        shutil.rmtree(home.path, ignore_errors=True)


def _end(pid: int) -> None:
    """Wait for its end, so that no shell writes into the home that is about to be removed."""
    process = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGTERM)
        if not select.select([process], [], [], 40)[0]:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(process)


@dataclass
class Daemon:
    home: Home
    process: asyncio.subprocess.Process
    url: str = ""

    async def stop(self) -> int:
        self.process.terminate()
        return await self.process.wait()


@asynccontextmanager
async def cruxd(home: Home, *options: str) -> AsyncIterator[Daemon]:
    """A daemon that serves MCP on its socket, and over HTTP with `--http`."""
    process = await asyncio.create_subprocess_exec(
        *CRUXD, "serve", *options, env=home.env, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    assert process.stderr is not None
    draining: asyncio.Task[bytes] | None = None
    try:
        seen = ""
        while line := (await process.stderr.readline()).decode():
            seen += line
            if found := re.search(r"event=serving mcp=\S+ url=(\S*)", line):
                break
        else:
            raise AssertionError(f"cruxd did not start:\n{seen}")
        draining = asyncio.create_task(process.stderr.read())
        yield Daemon(home, process, found[1])
    finally:
        if process.returncode is None:
            process.terminate()  # it ends its panes; the test's deadline holds for one that does not
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
        if draining is not None:
            await draining
        process._transport.close()  # type: ignore[attr-defined]


class Client:
    """A session over any wire: questions in order, notifications skipped."""

    def __init__(self, wire: StreamWire | HttpWire) -> None:
        self._wire = wire
        self._count = 0
        self.announced: set[str] = set()
        """The lists that may have changed since the start."""

    async def start(self) -> Json:
        return await self._wire.ask(initialize("2025-11-25"))

    def send_initialized(self) -> None:
        assert isinstance(self._wire, StreamWire)
        self._wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def ask(self, method: str, **params: Any) -> Json:
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        reply = await self._wire.ask(message)
        while reply.get("id") != self._count:
            assert isinstance(self._wire, StreamWire)
            if str(reply.get("method")).endswith("/list_changed"):
                self.announced.add(reply["method"].split("/")[1])
            reply = await self._wire.receive()
        return reply

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        reply = await self.ask("tools/call", name=tool, arguments=arguments)
        if reply["result"].get("isError"):
            return {"error": reply["result"]["_meta"]["dari/error"]}
        return dict(reply["result"]["structuredContent"])


@dataclass
class Bridge:
    process: asyncio.subprocess.Process
    client: Client

    async def end(self) -> tuple[int, str]:
        """As a client ends its server: close its input, then wait."""
        assert self.process.stdin and self.process.stderr and self.process.stdout
        self.process.stdin.close()
        errors = (await self.process.stderr.read()).decode()
        return await self.process.wait(), errors


@asynccontextmanager
async def bridge(home: Home, *options: str, starts: bool = True) -> AsyncIterator[Bridge]:
    """`crux-mcp-bridge` with the words of the design, unless others are given."""
    process = await asyncio.create_subprocess_exec(
        *BRIDGE,
        *(options or ("--socket", "~/.crux/mcp.sock")),
        env=home.env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert process.stdin and process.stdout
    client = Client(StreamWire(process.stdout, process.stdin))
    try:
        if starts:
            await client.start()
        yield Bridge(process, client)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


async def gone(*pids: int) -> None:
    """Wait until none of these processes is left."""
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(process, ended.set)
        try:
            await ended.wait()
        finally:
            asyncio.get_running_loop().remove_reader(process)
            os.close(process)
