"""Messages nobody should send, over every transport: each is answered, and what comes next is too."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.core.tool import tool
from dari.errors import NotFound
from tests.support.demo_server import DemoTools, demo_server
from tests.support.transports import running
from tests.support.wire import HttpWire, Json, MemoryWire, StreamWire, call, demo_process, initialize

WAYS = ["http", "unix", "unix with Content-Length", "http on unix"]
PING: Json = {"jsonrpc": "2.0", "id": "after", "method": "ping"}
EVERY_WAY = pytest.mark.parametrize("way", WAYS)


class Untellable(DemoTools):
    """Tools whose failures are hard to tell."""

    @tool()
    async def badly_named(self) -> str:
        """Fail with a file name that is no UTF-8."""
        raise NotFound("no file \udcff here", "rename \udcfe")

    @tool()
    async def badly_told(self) -> str:
        """Return a text that is no UTF-8."""
        return "\udcff"

    @tool()
    def badly_named_at_once(self) -> str:
        """Fail the same way without a task."""
        raise NotFound("no file \udcff here", "rename \udcfe")

    @tool()
    async def leaving(self) -> str:
        """Behave like a library that ends the program."""
        raise SystemExit(2)

    @tool()
    def leaving_at_once(self) -> str:
        """Do the same without a task."""
        raise SystemExit(2)


@asynccontextmanager
async def client(way: str, directory: Path, tools: DemoTools | None = None) -> AsyncIterator[Any]:
    """A wire on which `initialize` was answered, and `send` takes bytes."""
    async with running(socket_path=directory / "s", tools=tools) as rig:
        if way == "http":
            wire: Any = await rig.http()
        elif way == "http on unix":
            wire = await rig.http_on_unix()
        else:
            wire = await rig.unix()
            wire = StreamWire(wire.reader, wire.writer, lsp="Content-Length" in way)
        await wire.ask(initialize())
        yield wire


async def exchange(wire: HttpWire | StreamWire, message: bytes) -> Json:
    """One message as bytes and its reply."""
    if isinstance(wire, HttpWire):
        return (await wire.post(message)).json()
    wire.send(message)
    return await wire.receive()


def request(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", **members}).encode()


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


REFUSED: list[tuple[bytes, set[int]]] = [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b}' % nested(100_000).encode(), {-32700, -32602}),
    (b"[" * 100_000, {-32700, -32600}),
    (b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % nested(5_000).encode(), {-32700, -32600}),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo_echo","arguments":%b}}'
     % nested(50_000).encode(), {-32700, -32602}),
    (b'{"jsonrpc":"2.0","id":1,"method":"p\xff\xfeing"}', {-32700}),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping\\ud800"}', {-32601}),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping\x00"}', {-32700}),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', {-32700}),
    (request(id=None), {-32600}),
    (request(id=True), {-32600}),
    (request(id=1.5), {-32600}),
    (request(id=[1]), {-32600}),
    (request(id={"a": 1}), {-32600}),
    (request(jsonrpc="1.0"), {-32600}),
    (request(jsonrpc=2), {-32600}),
    (request(method=7), {-32600}),
    (request(method=""), {-32601}),
    (request(method="ping\u0000"), {-32601}),
    (request(method="x" * 1_000_000), {-32601}),
    (request(params=[1, 2]), {-32602}),
    (request(params="text"), {-32602}),
    (request(method="tools/call", params={"name": "demo_echo", "arguments": []}), {-32602}),
    (request(method="tools/call", params={"name": "demo_echo", "arguments": "x"}), {-32602}),
    (request(method="tools/call", params={"name": 7}), {-32602}),
    (request(method="tools/call", params={"name": "\u0000"}), {-32602}),
    (b'{"id":1}', {-32600}),
    (b"{}", {-32600}),
    (b"null", {-32600}),
    (b"7", {-32600}),
    (b'"ping"', {-32600}),
]  # fmt: skip


@EVERY_WAY
async def test_what_cannot_be_served_is_refused_and_the_next_message_is_served(way: str, tmp_path: Path) -> None:
    async with client(way, tmp_path) as wire:
        for message, codes in REFUSED:
            reply = await exchange(wire, message)
            error = reply.get("error") or reply["result"]["_meta"]["dari/error"]
            assert error["code"] in codes, message[:80]
            assert (await wire.ask(PING))["id"] == "after", message[:80]


SERVED: list[tuple[bytes, Any]] = [
    (request(id=10**30), 10**30),
    (request(id=-(2**63)), -(2**63)),
    (request(id="x" * 1_000_000), "x" * 1_000_000),
    (request(id=""), ""),
    (request(id="\u0000\U0001f980"), "\u0000\U0001f980"),
    (request(extra={"a": [1, 2]}, jsonrpc="2.0"), 1),
    (request(params={"unknown": 1, "_meta": {"x/y": nested(3)}}), 1),
    (b'{"method":"ping","id":1,"jsonrpc":"2.0","id":2}', 2),
    (b'  {"jsonrpc": "2.0" , "id" : 1, "method": "ping"}  ', 1),
    (request(params=None), 1),
]


@EVERY_WAY
async def test_what_is_merely_odd_is_served(way: str, tmp_path: Path) -> None:
    async with client(way, tmp_path) as wire:
        for message, request_id in SERVED:
            reply = await exchange(wire, message)
            assert reply == {"jsonrpc": "2.0", "id": request_id, "result": {}}, message[:80]


@pytest.mark.parametrize("way", ["stdio", "stdio with Content-Length", *WAYS])
async def test_five_megabytes_of_arguments_go_there_and_come_back(way: str, tmp_path: Path) -> None:
    text = "안녕 " * (5 * 1024 * 1024 // len("안녕 ".encode()))
    if way.startswith("stdio"):
        async with demo_process(tmp_path) as server:
            wire: Any = server.stdio(lsp="Content-Length" in way)
            await wire.ask(initialize())
            reply = await wire.ask(call("demo_echo", 1, text=text))
    else:
        async with client(way, tmp_path) as wire:
            reply = await wire.ask(call("demo_echo", 1, text=text))
    assert reply["result"]["structuredContent"]["text"] == text


@EVERY_WAY
@pytest.mark.parametrize("name", ["badly_named", "badly_told", "badly_named_at_once", "leaving", "leaving_at_once"])
async def test_a_tool_whose_failure_is_hard_to_tell_still_answers(way: str, name: str, tmp_path: Path) -> None:
    """A file name that is no UTF-8 reaches Python as lone surrogates, and an error message may quote it."""
    async with client(way, tmp_path, Untellable()) as wire:
        reply = await wire.ask(call(f"demo_{name}"))
        assert reply["result"]["isError"] is True
        assert (await wire.ask(PING))["id"] == "after"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_a_call_whose_failure_is_hard_to_tell_is_forgotten(version: str) -> None:
    server = demo_server(Untellable())
    wire = MemoryWire(server)
    await wire.ask(initialize(version))
    await wire.ask(call("demo_badly_named"))
    assert len(server.calls) == 0
