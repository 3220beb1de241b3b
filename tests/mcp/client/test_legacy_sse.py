"""Our client over the HTTP+SSE transport of 2024-11-05: the SDK's server, and ones that do as they are told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dari.core.content import TextContent
from dari.core.context import Progress
from dari.errors import Unavailable
from dari.mcp.client import Client, RemoteError
from dari.transport.client.legacy_sse import SseChannel
from tests.support.mcp_client import ROOT
from tests.support.ports import reserved_port
from tests.support.waiting import until


@asynccontextmanager
async def sdk(**options: Any) -> AsyncIterator[Client]:
    with reserved_port() as port:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.mcp.client.sdk_server", str(port), "sse"),
            env={"PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        client = Client(SseChannel(f"http://127.0.0.1:{port}/sse"), mode="handshake", **options)
        try:
            while not client.is_open:
                try:
                    await client.open()
                except Unavailable:
                    await asyncio.sleep(0.05)  # the server says nothing when it is ready
            yield client
        finally:
            await client.close()
            process.kill()
            await process.wait()


async def test_a_server_of_the_sdk_lists_calls_and_reports_progress() -> None:
    async with sdk() as client:
        assert "echo" in {tool.name for tool in await client.list_tools()}
        assert (await client.call_tool("echo", {"text": "안녕"})).content == [TextContent(text="안녕")]
        seen: list[Progress] = []
        await client.call_tool("count", {"to": 3}, progress=seen.append)
        assert [report.progress for report in seen] == [1, 2, 3]
        assert (await client.call_tool("fail")).is_error
        with pytest.raises(RemoteError):
            await client.request("no/such")


async def test_calls_run_side_by_side_and_a_cancelled_one_leaves_the_others_alone() -> None:
    async with sdk() as client:
        hanging = asyncio.ensure_future(client.call_tool("hang"))
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(20)))
        assert [result.content for result in results] == [[TextContent(text=str(n))] for n in range(20)]
        hanging.cancel()
        assert (await client.call_tool("echo", {"text": "on"})).content == [TextContent(text="on")]


class Scripted:
    """A server whose stream says what the test wants."""

    def __init__(self, endpoint: str, status: int = 200, refuses: int = 0) -> None:
        self.endpoint = endpoint
        self.status = status
        self.refuses = refuses
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.stream: asyncio.StreamWriter | None = None
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("GET"):
            reason = f"HTTP/1.1 {self.status} X\r\nContent-Type: text/event-stream\r\n\r\n"
            writer.write(reason.encode() + f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
            self.stream = writer
            return
        length = int(head.lower().partition("content-length:")[2].split("\r\n")[0])
        message = json.loads(await reader.readexactly(length))
        self.posts.append((head.split()[1], message))
        if self.refuses:
            writer.write(f"HTTP/1.1 {self.refuses} No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno".encode())
            writer.close()
            return
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\nConnection: close\r\n\r\nAccepted")
        writer.close()
        if message.get("method") == "initialize":
            self.say(message["id"], {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "x"}})

    def say(self, request_id: int, result: dict[str, Any]) -> None:
        assert self.stream is not None
        body = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result})
        self.stream.write(f"event: message\ndata: {body}\n\n".encode())


@asynccontextmanager
async def scripted(server: Scripted, **options: Any) -> AsyncIterator[Client]:
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    client = Client(SseChannel(f"http://127.0.0.1:{server.port}/sse", bearer="t0p", **options), mode="handshake")
    try:
        yield client
    finally:
        await client.close()
        if server.stream is not None:
            server.stream.close()
        listening.close()


async def test_messages_go_where_the_first_event_says() -> None:
    server = Scripted("/messages?session=7")
    async with scripted(server) as client:
        agreement = await client.open()
        assert agreement.version == "2024-11-05"
        assert {path for path, _ in server.posts} == {"/messages?session=7"}


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1/messages", "https://elsewhere.test/m", "//evil.test/m"])
async def test_an_endpoint_at_another_origin_gets_no_token(endpoint: str) -> None:
    async with scripted(Scripted(endpoint)) as client:
        with pytest.raises(Unavailable) as caught:
            await client.open()
        assert "another origin" in caught.value.message


async def test_a_url_that_is_no_stream_is_told_by_its_status() -> None:
    async with scripted(Scripted("/m", status=404)) as client:
        with pytest.raises(Unavailable) as caught:
            await client.open()
        assert "HTTP 404" in caught.value.message


async def test_a_refused_message_fails_its_request() -> None:
    server = Scripted("/m")
    async with scripted(server) as client:
        await client.open()
        server.refuses = 500
        with pytest.raises(Unavailable):
            await client.call_tool("x", timeout_s=10)


async def test_the_end_of_the_stream_is_the_end_of_every_call() -> None:
    server = Scripted("/m")
    async with scripted(server) as client:
        await client.open()
        waiting = asyncio.ensure_future(client.call_tool("x", timeout_s=15))
        await until(lambda: any(message.get("method") == "tools/call" for _, message in server.posts))
        assert server.stream is not None
        server.stream.close()
        with pytest.raises(Unavailable) as caught:
            await waiting
        assert "stream ended" in caught.value.message and not client.is_open


async def test_a_stream_that_is_silent_for_long_still_brings_the_answer_of_a_long_call() -> None:
    server = Scripted("/m")
    async with scripted(server, idle_timeout_s=0.02) as client:
        await client.open()
        call = asyncio.ensure_future(client.call_tool("x"))
        await until(lambda: server.posts[-1][1].get("method") == "tools/call")
        await asyncio.sleep(0.1)  # five idle times
        server.say(server.posts[-1][1]["id"], {"content": []})
        assert (await call).content == []
