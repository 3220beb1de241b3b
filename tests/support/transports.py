"""A hub inside the test's own loop, so that sessions, calls, exchanges, tasks and descriptors can be counted."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from dari.core.context import Context
from dari.core.scopes import MCP_GRANT
from dari.core.tool import tool
from dari.mcp.server import Server
from dari.settings import ServeSettings
from dari.transport.endpoint import McpEndpoint
from dari.transport.http import McpProtocol
from dari.transport.server import McpListeners
from dari.transport.uvicorn_server import AsgiApp
from tests.support.demo_server import DemoTools, demo_server
from tests.support.leftovers import open_descriptors
from tests.support.waiting import turn_until
from tests.support.wire import ROOT, HttpWire, Json, StreamWire, call, initialize

JSON_ONLY = {"Accept": "application/json"}


class Holdings(NamedTuple):
    counts: dict[str, int]
    descriptors: set[str]


class Rig:
    """A running hub and the connections a test opened to it."""

    def __init__(self, hub: McpListeners, server: Server, tools: DemoTools, settings: ServeSettings) -> None:
        self.hub = hub
        self.server = server
        self.tools = tools
        self.settings = settings
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def port(self) -> int:
        return int(self.hub.url.rsplit(":", 1)[1].removesuffix("/mcp"))

    @property
    def endpoint(self) -> McpEndpoint:
        assert self.hub.web is not None
        return self.hub.web.endpoint

    @property
    def connections(self) -> list[McpProtocol]:
        assert self.hub.web is not None
        return list(self.hub.web._uvicorn.server_state.connections)  # type: ignore[arg-type]

    async def http(self, host: str = "127.0.0.1") -> HttpWire:
        streams = await asyncio.open_connection(host, self.port, limit=2**26)
        self._writers.append(streams[1])
        return HttpWire(*streams, token=self.token)

    async def session(self, version: str = "2025-11-25", **capabilities: Any) -> HttpWire:
        """A connection on which `initialize` was answered."""
        wire = await self.http()
        await wire.ask(initialize(version, **capabilities))
        return wire

    async def again(self, wire: HttpWire) -> HttpWire:
        """Another connection with the same headers, the session's id among them."""
        other = await self.http()
        other.headers = dict(wire.headers)
        return other

    async def unix(self) -> StreamWire:
        streams = await asyncio.open_unix_connection(str(self.settings.socket_path), limit=2**26)
        self._writers.append(streams[1])
        return StreamWire(*streams)

    async def http_on_unix(self) -> HttpWire:
        streams = await asyncio.open_unix_connection(str(self.settings.socket_path), limit=2**26)
        self._writers.append(streams[1])
        return HttpWire(*streams)

    @property
    def token(self) -> str:
        path = self.settings.token_path
        return path.read_text().strip() if path is not None and path.exists() else ""

    def counts(self) -> dict[str, int]:
        """What must be back to where it was once every client is gone."""
        return {
            "sessions": len(self.hub.sessions),
            "server sessions": len(self.server.sessions),
            "calls": len(self.server.calls),
            "listening": len(self.server.listening),
            "exchanges": len(self.endpoint.open),
            "connections": len(self.connections),
            "tasks": len(asyncio.all_tasks()),
        }

    def holdings(self) -> Holdings:
        return Holdings(self.counts(), open_descriptors())

    async def until_back_to(self, before: Holdings) -> None:
        """Every count is what it was, and no descriptor is open that was not."""

        def left() -> dict[str, object]:
            opened = open_descriptors() - before.descriptors
            changed = {name: count for name, count in self.counts().items() if count != before.counts[name]}
            return changed | ({"descriptors": opened} if opened else {})

        await turn_until(lambda: not left(), shown=left)

    async def close_wires(self) -> None:
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        self._writers.clear()


@asynccontextmanager
async def running(
    *, strict: bool = False, tools: DemoTools | None = None, app: AsgiApp | None = None, **settings: Any
) -> AsyncIterator[Rig]:
    """A hub on a free port, without a token unless the settings name one."""
    chosen = ServeSettings(**{"transport": "http", "http_port": 0, **settings})
    tools = tools or DemoTools()
    server = demo_server(tools, strict=strict)
    hub = McpListeners(server, chosen, MCP_GRANT, None if app is None else lambda health, guard: app)
    await hub.start()
    rig = Rig(hub, server, tools, chosen)
    try:
        yield rig
    finally:
        tools.release.set()
        await rig.close_wires()
        await hub.stop()
        server.close()


class Steps(DemoTools):
    """A tool that tells two steps, one before and one after it is released."""

    @tool()
    async def steps(self, context: Context) -> str:
        """Report, wait, report."""
        await context.progress(1)
        self.started.set()
        await self.release.wait()
        await context.progress(2)
        return "done"

    @tool()
    async def polled(self, context: Context) -> str:
        """Let go of the connection, then go on."""
        await context.progress(1)
        context.suspend_stream(retry_ms=70)
        self.started.set()
        await self.release.wait()
        await context.progress(2)
        return "done"


def with_progress(name: str, request_id: int = 1) -> Json:
    message = call(name, request_id)
    message["params"]["_meta"] = {"progressToken": "t"}
    return message


class Events:
    """Reads server-sent events from a response that goes on."""

    def __init__(self, wire: HttpWire) -> None:
        self._wire = wire
        self._buffer = b""

    async def block(self) -> str:
        """The next event (or comment) as text, without its closing blank line; empty at the end of the stream."""
        while b"\n\n" not in self._buffer:
            part = await self._wire.chunk()
            if not part:
                return ""
            self._buffer += part
        block, _, self._buffer = self._buffer.partition(b"\n\n")
        return block.decode()

    async def next(self) -> tuple[str, Json]:
        """The id and the message of the next event that carries one."""
        while block := await self.block():
            fields = dict(line.partition(": ")[::2] for line in block.split("\n"))
            if fields.get("data"):
                return fields.get("id", ""), json.loads(fields["data"])
        raise EOFError("the stream ended")

    async def message(self) -> Json:
        return (await self.next())[1]


async def open_events(wire: HttpWire, **headers: str) -> Events:
    """Send a GET and check that its stream begins."""
    wire.send("GET", "/mcp", headers={"Content-Type": "", **headers})
    status, _ = await wire.head()
    assert status == 200
    return Events(wire)


@contextmanager
def logged(level: int = logging.INFO) -> Iterator[list[str]]:
    """The lines that `dari` logs inside the block."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger("dari"), Keep()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


async def start_process(directory: Path, *arguments: str, **streams: Any) -> asyncio.subprocess.Process:
    """A Python process of ours with nothing of the test's environment but PATH; a hub that it starts ends after it."""
    home = {"HOME": str(directory), "DARI_BRIDGE_IDLE_S": "1"}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **home, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        limit=2**26,
        **{"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, **streams},
    )
