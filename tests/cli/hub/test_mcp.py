"""MCP through the socket: after the first line, one message a line."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.config.locations import ClientEnvironment
from dari.cli.hub import client, protocol
from dari.cli.hub.client import CliSocketRefused, open_mcp
from dari.core.scopes import MCP_GRANT, Grant
from dari.errors import Unavailable
from dari.mcp.server import Server
from tests.support.demo_server import DemoTools, demo_server
from tests.support.hub_socket import Json, SocketCaller, calling, connected, empty, hello, make_server, open_socket
from tests.support.wire import call, initialize, stateless


async def ask(caller: SocketCaller, message: Json) -> Json:
    caller.writer.write(json.dumps(message).encode() + b"\n")
    reply: Json = json.loads(await caller.reader.readline())
    return reply


async def test_both_eras_are_spoken(run_dir: Path) -> None:
    async with open_socket(run_dir), calling(run_dir, purpose="mcp") as caller:
        assert (await ask(caller, initialize()))["result"]["serverInfo"]["name"] == "demo"
        assert (await ask(caller, call("demo_echo", text="a")))["result"]["structuredContent"]["text"] == "a"
        modern = await ask(caller, stateless(call("demo_echo", 2, text="b")))
        assert modern["result"]["structuredContent"]["text"] == "b"


async def test_what_is_sent_with_the_first_line_is_not_lost(run_dir: Path) -> None:
    async with open_socket(run_dir), connected(run_dir) as caller:
        lines = [hello(run_dir, purpose="mcp"), initialize(), call("demo_echo", text="early")]
        caller.writer.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        await caller.frame()
        replies = [json.loads(await caller.reader.readline()) for _ in range(2)]
        assert replies[1]["result"]["structuredContent"]["text"] == "early"


async def test_a_server_is_made_for_where_its_client_stands_and_ends_with_it(run_dir: Path) -> None:
    made: list[tuple[ClientEnvironment, Mapping[str, Any]]] = []
    left = asyncio.Event()

    @asynccontextmanager
    async def remember(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        made.append((around, options))
        async with make_server(around, options) as server:
            yield server
        left.set()

    async with open_socket(run_dir, make_server=remember) as socket:
        async with calling(run_dir, purpose="mcp", options={"mode": "search"}, cwd="/srv") as caller:
            await ask(caller, initialize())
            assert socket.connections == 1
        await left.wait()
        await empty(socket)
    [(around, options)] = made
    assert (str(around.cwd), options) == ("/srv", {"mode": "search"})


async def test_a_client_that_leaves_cancels_its_calls(run_dir: Path) -> None:
    tools = DemoTools()

    @asynccontextmanager
    async def slow(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        yield demo_server(tools)

    async with open_socket(run_dir, make_server=slow), calling(run_dir, purpose="mcp") as caller:
        await ask(caller, initialize())
        caller.writer.write(json.dumps(call("demo_hang")).encode() + b"\n")
        await tools.started.wait()
        caller.vanish()
        await tools.cancelled.wait()


async def test_answers_still_come_after_the_client_closed_its_writing_end(run_dir: Path) -> None:
    async with open_socket(run_dir), calling(run_dir, purpose="mcp") as caller:
        await ask(caller, initialize())
        caller.writer.write(json.dumps(call("demo_echo", text="last")).encode())
        caller.writer.write_eof()
        assert json.loads(await caller.reader.readline())["result"]["structuredContent"]["text"] == "last"
        assert await caller.reader.read() == b""


async def test_a_server_that_cannot_be_made_is_a_refusal(run_dir: Path) -> None:
    @asynccontextmanager
    async def fails(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        raise Unavailable("no profile is ready", "add one")
        yield

    async with open_socket(run_dir, make_server=fails):
        with pytest.raises(CliSocketRefused, match="no profile is ready") as refused:
            await asyncio.to_thread(open_mcp, str(run_dir), {}, {}, "/")
        assert (refused.value.code, refused.value.hint) == ("unavailable", "add one")


async def test_a_server_that_a_full_disk_prevents_is_a_refusal_with_the_reason(run_dir: Path) -> None:
    @asynccontextmanager
    async def fail(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        raise OSError(errno.ENOSPC, "No space left on device")
        yield

    async with open_socket(run_dir, make_server=fail):
        with pytest.raises(CliSocketRefused, match="the disk is full"):
            await asyncio.to_thread(open_mcp, str(run_dir), {}, {}, "/")


def test_a_hub_that_hangs_is_not_waited_for_without_end(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "HANDSHAKE_TIMEOUT_S", 0.05)
    (run_dir / protocol.TOKEN_NAME).write_text("anything")
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(run_dir / protocol.SOCKET_NAME))
        hanging.listen()
        with pytest.raises(TimeoutError):
            client.open_mcp(str(run_dir), {}, {}, "/")


async def test_our_own_code_gets_a_socket_that_speaks_mcp(run_dir: Path) -> None:
    async with open_socket(run_dir):
        sock, rest = await asyncio.to_thread(open_mcp, str(run_dir), {}, {"HOME": "/"}, "/")
        assert rest == b""
        reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=sock.detach()))
        try:
            reply = await ask(SocketCaller(reader, writer), initialize())
            assert reply["result"]["serverInfo"]["name"] == "demo"
        finally:
            writer.close()


async def test_what_is_kept_for_clients_of_a_listener_without_sessions_ends_with_it(run_dir: Path) -> None:
    """Two `dari mcp --transport http` share the token, and with it the name of such a client."""
    ended: list[Grant] = []
    left = asyncio.Event()

    @asynccontextmanager
    async def remember(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        async with make_server(around, options) as server:
            server.on_access_end.append(ended.append)
            yield server
        if len(ended) == 2:
            left.set()

    async with open_socket(run_dir, make_server=remember):
        async with (
            calling(run_dir, purpose="mcp", options={"http": "one"}),
            calling(run_dir, purpose="mcp", options={"http": "two"}),
        ):
            assert ended == []
        await left.wait()
    first, second = ended
    assert not first.may_relay_person, "whose process it is that comes by HTTP is not known"
    key = first.session_key("Cursor")
    assert first.holder == second.holder == "mcp"
    assert first.has_session_key(key)
    assert not second.has_session_key(key) and not MCP_GRANT.has_session_key(key)
