"""MCP through the door: after the first line, one message a line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.config.locations import ClientEnvironment
from dari.cli.hub.client import CliSocketRefused, open_mcp
from dari.errors import Unavailable
from dari.mcp.server import Server
from tests.support.demo_server import DemoTools, demo_server
from tests.support.hub_socket import Json, Visitor, connected, empty, hello, make_server, open_door, visiting
from tests.support.wire import call, initialize, stateless


async def ask(visitor: Visitor, message: Json) -> Json:
    visitor.writer.write(json.dumps(message).encode() + b"\n")
    reply: Json = json.loads(await visitor.reader.readline())
    return reply


async def test_both_eras_are_spoken(run_dir: Path) -> None:
    async with open_door(run_dir), visiting(run_dir, purpose="mcp") as visitor:
        assert (await ask(visitor, initialize()))["result"]["serverInfo"]["name"] == "demo"
        assert (await ask(visitor, call("demo_echo", text="a")))["result"]["structuredContent"]["text"] == "a"
        modern = await ask(visitor, stateless(call("demo_echo", 2, text="b")))
        assert modern["result"]["structuredContent"]["text"] == "b"


async def test_what_is_sent_with_the_first_line_is_not_lost(run_dir: Path) -> None:
    async with open_door(run_dir), connected(run_dir) as visitor:
        lines = [hello(run_dir, purpose="mcp"), initialize(), call("demo_echo", text="early")]
        visitor.writer.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        await visitor.frame()
        replies = [json.loads(await visitor.reader.readline()) for _ in range(2)]
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

    async with open_door(run_dir, make_server=remember) as door:
        async with visiting(run_dir, purpose="mcp", options={"mode": "search"}, cwd="/srv") as visitor:
            await ask(visitor, initialize())
            assert door.connections == 1
        await left.wait()
        await empty(door)
    [(around, options)] = made
    assert (str(around.cwd), options) == ("/srv", {"mode": "search"})


async def test_a_client_that_leaves_cancels_its_calls(run_dir: Path) -> None:
    tools = DemoTools()

    @asynccontextmanager
    async def slow(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        yield demo_server(tools)

    async with open_door(run_dir, make_server=slow), visiting(run_dir, purpose="mcp") as visitor:
        await ask(visitor, initialize())
        visitor.writer.write(json.dumps(call("demo_hang")).encode() + b"\n")
        await tools.started.wait()
        visitor.vanish()
        await tools.cancelled.wait()


async def test_answers_still_come_after_the_client_closed_its_writing_end(run_dir: Path) -> None:
    async with open_door(run_dir), visiting(run_dir, purpose="mcp") as visitor:
        await ask(visitor, initialize())
        visitor.writer.write(json.dumps(call("demo_echo", text="last")).encode())
        visitor.writer.write_eof()
        assert json.loads(await visitor.reader.readline())["result"]["structuredContent"]["text"] == "last"
        assert await visitor.reader.read() == b""


async def test_a_server_that_cannot_be_made_is_a_refusal(run_dir: Path) -> None:
    @asynccontextmanager
    async def fails(around: ClientEnvironment, options: Mapping[str, Any]) -> AsyncIterator[Server]:
        raise Unavailable("no profile is ready", "add one")
        yield

    async with open_door(run_dir, make_server=fails):
        with pytest.raises(CliSocketRefused, match="no profile is ready") as refused:
            await asyncio.to_thread(open_mcp, str(run_dir), {}, {}, "/")
        assert (refused.value.code, refused.value.hint) == ("unavailable", "add one")


async def test_our_own_code_gets_a_socket_that_speaks_mcp(run_dir: Path) -> None:
    async with open_door(run_dir):
        sock, rest = await asyncio.to_thread(open_mcp, str(run_dir), {}, {"HOME": "/"}, "/")
        assert rest == b""
        import socket

        reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=sock.detach()))
        try:
            reply = await ask(Visitor(reader, writer), initialize())
            assert reply["result"]["serverInfo"]["name"] == "demo"
        finally:
            writer.close()
