"""Our client and our server over HTTP, TCP and Unix sockets."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.core.context import Progress
from dari.core.events import ListChanged, ResourceUpdated
from dari.errors import TimedOut, Unavailable
from dari.mcp.client import Client, RemoteError
from dari.mcp.client.errors import Unauthorized
from dari.mcp.client.events import LogMessage
from dari.transport.client.http import HttpChannel
from dari.transport.connect import connect
from tests.support.demo_server import DemoTools, demo_server
from tests.support.leftovers import open_descriptors
from tests.support.mcp_client import ERAS, four, say_yes, serving, two_folders
from tests.support.waiting import until

both_eras = pytest.mark.parametrize("mode", ERAS)
everywhere = pytest.mark.parametrize("door", ["http", "unix", "http+unix"])


@asynccontextmanager
async def opened(tools: DemoTools, mode: Any, door: str = "http", **options: Any) -> AsyncIterator[Client]:
    with tempfile.TemporaryDirectory(prefix="dari-") as directory:
        socket = Path(directory) / "mcp.sock"
        async with serving(demo_server(tools), socket_path=socket) as hub:
            server = {"http": hub.url, "unix": socket, "http+unix": f"http+unix:{socket}"}[door]
            async with connect(server, mode=mode, **options) as client:
                yield client


@both_eras
@everywhere
async def test_two_hundred_calls_at_once(mode: Any, door: str) -> None:
    async with opened(DemoTools(), mode, door) as client:
        results = await asyncio.gather(*(client.call_tool("demo_echo", {"text": str(n)}) for n in range(200)))
    assert [result.structured_content["text"] for result in results] == [str(n) for n in range(200)]


@both_eras
@everywhere
async def test_progress_and_log_messages_come_with_the_call(mode: Any, door: str) -> None:
    seen: list[Progress] = []
    async with opened(DemoTools(), mode, door) as client, client.events(lists=[]) as events:
        await client.set_level("info")
        await client.call_tool("demo_count", {"to": 3}, progress=seen.append)
        assert [report.progress for report in seen] == [1, 2, 3]
        assert await anext(events) == LogMessage("info", {"number": 1}, "demo")


@both_eras
@everywhere
async def test_questions_are_answered(mode: Any, door: str) -> None:
    callbacks = {"on_elicit": say_yes, "on_sample": four, "on_roots": two_folders}
    async with opened(DemoTools(), mode, door, **callbacks) as client:
        assert (await client.call_tool("demo_introduce")).text == "Ada and Ada"
        assert (await client.call_tool("demo_think")).text == "4"
        assert (await client.call_tool("demo_folders")).text == "file:///a,file:///b"


@both_eras
@everywhere
async def test_cancelling_reaches_the_server(mode: Any, door: str) -> None:
    tools = DemoTools()
    async with opened(tools, mode, door) as client:
        task = asyncio.create_task(client.call_tool("demo_hang"))
        await tools.started.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await tools.cancelled.wait()
        assert (await client.call_tool("demo_echo", {"text": "alive"})).is_error is False


@both_eras
@everywhere
async def test_a_time_limit_reaches_the_server(mode: Any, door: str) -> None:
    tools = DemoTools()
    async with opened(tools, mode, door) as client:
        with pytest.raises(TimedOut):
            await client.call_tool("demo_hang", timeout_s=0.05)
        await tools.cancelled.wait()


@both_eras
@everywhere
async def test_events_arrive(mode: Any, door: str) -> None:
    server = demo_server()
    with tempfile.TemporaryDirectory(prefix="dari-") as directory:
        socket = Path(directory) / "mcp.sock"
        async with serving(server, socket_path=socket) as hub:
            url = {"http": hub.url, "unix": socket, "http+unix": f"http+unix:{socket}"}[door]
            async with connect(url, mode=mode) as client, client.events(uris=["demo://note"]) as events:
                server.registry.resource_updated("demo://note")
                assert await anext(events) == ResourceUpdated("demo://note")
                server.registry.remove_tools("demo_echo")
                assert await anext(events) == ListChanged("tools")


@both_eras
async def test_errors_keep_their_codes(mode: Any) -> None:
    async with opened(DemoTools(), mode) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("nobody")
        assert caught.value.remote_code == -32602
        with pytest.raises(RemoteError) as caught:
            await client.request("no/such/method")
        assert caught.value.remote_code == -32601


async def test_arguments_that_belong_into_headers_are_mirrored() -> None:
    async with opened(DemoTools(), "stateless") as client:
        await client.list_tools()
        assert (await client.call_tool("demo_routed", {"region": "세계", "level": 3})).text == "세계:3"
        raw = await client.request("tools/call", {"name": "demo_routed", "arguments": {"region": "eu", "level": 3}})
        assert b"eu:3" in bytes(raw)


async def test_a_tool_whose_headers_are_not_known_yet_is_looked_up_and_called_again() -> None:
    async with opened(DemoTools(), "stateless") as client:
        assert (await client.call_tool("demo_routed", {"region": "eu"})).text == "eu:0"


async def test_a_name_that_is_no_header_value_is_encoded() -> None:
    async with opened(DemoTools(), "stateless") as client:
        with pytest.raises(RemoteError, match="unknown tool"):
            await client.call_tool("도구\r\n x")


async def test_a_forgotten_session_is_renewed_and_the_call_repeated() -> None:
    tools = DemoTools()
    server = demo_server(tools)
    async with serving(server) as hub, connect(hub.url, mode="handshake") as client:
        await client.set_level("error")
        channel = client._channel
        assert isinstance(channel, HttpChannel)
        before = channel.session_id
        hub.sessions.close()
        results = await asyncio.gather(*(client.call_tool("demo_echo", {"text": str(n)}) for n in range(20)))
        assert [result.structured_content["text"] for result in results] == [str(n) for n in range(20)]
        assert channel.session_id not in ("", before)
        assert {session.log_level for session in server.sessions} == {"error"}
        assert len(hub.sessions) == 1


async def test_subscriptions_survive_a_forgotten_session(monkeypatch: Any) -> None:
    server = demo_server()
    async with (
        serving(server) as hub,
        connect(hub.url, mode="handshake") as client,
        client.events(lists=["tools"], uris=["demo://note"]) as events,
    ):
        hub.sessions.close()
        await client.ping()
        assert {await anext(events), await anext(events)} == {ListChanged("tools"), ResourceUpdated("demo://note")}
        server.registry.resource_updated("demo://note")
        assert await anext(events) == ResourceUpdated("demo://note")


async def test_closing_ends_the_session_on_the_server() -> None:
    async with serving(demo_server()) as hub:
        async with connect(hub.url, mode="handshake"):
            assert len(hub.sessions) == 1
        assert len(hub.sessions) == 0


async def test_a_token_is_sent_and_a_missing_one_is_named(tmp_path: Path) -> None:
    token_path = tmp_path / "token"
    async with serving(demo_server(), token_path=token_path) as hub:
        token = token_path.read_text().strip()
        async with connect(hub.url, bearer=token) as client:
            await client.ping()
        async with connect(hub.url, bearer=lambda: token) as client:
            await client.ping()
        async with connect(hub.url, headers={"Authorization": f"Bearer {token}"}) as client:
            await client.ping()
        with pytest.raises(Unauthorized, match="HTTP 401") as caught:
            await connect(hub.url).open()
        assert "bearer" in caught.value.hint


async def test_the_strict_server_of_design_000_is_spoken_to() -> None:
    async with serving(demo_server(strict=True), protocol="strict") as hub, connect(hub.url) as client:
        assert client.version == "2024-11-05"
        assert (await client.call_tool("demo_echo", {"text": "x"})).structured_content == {"text": "x", "times": 1}
        hub.sessions.close()
        assert (await client.call_tool("demo_echo", {"text": "y"})).is_error is False


async def test_nobody_at_the_door_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9"):
        await connect("http://127.0.0.1:9/mcp").open()
    for server in (tmp_path / "no.sock", f"http+unix:{tmp_path / 'no.sock'}"):
        with pytest.raises(Unavailable, match=r"no\.sock"):
            await connect(server).open()


async def test_the_end_of_a_unix_server_is_noticed() -> None:
    tools = DemoTools()
    with pytest.raises(Unavailable):
        async with opened(tools, "handshake", "unix") as client:
            task = asyncio.create_task(client.call_tool("demo_hang"))
            await tools.started.wait()
            channel = client._channel
            channel._transport.abort()  # type: ignore[attr-defined]
            tools.release.set()
            await task


@both_eras
async def test_connections_are_kept_and_none_is_left_behind(mode: Any) -> None:
    server = demo_server()
    async with serving(server) as hub:
        async with connect(hub.url, mode=mode) as client:
            await client.call_tool("demo_echo", {"text": "x"})
        files, tasks = open_descriptors(), asyncio.all_tasks()
        for _ in range(3):
            async with connect(hub.url, mode=mode, on_elicit=say_yes) as client:
                for number in range(10):
                    await client.call_tool("demo_echo", {"text": str(number)})
                channel = client._channel
                assert isinstance(channel, HttpChannel)
                # One for the calls; in the handshake era one more for the stream that stands.
                assert len(channel.pool._open) <= 2
                async with client.events():
                    await client.call_tool("demo_count", progress=lambda _: None)
                with pytest.raises(TimedOut):
                    await client.call_tool("demo_hang", timeout_s=0.02)
        await until(lambda: open_descriptors() <= files and asyncio.all_tasks() <= tasks)
        await until(lambda: not server.calls and not server.listening)
