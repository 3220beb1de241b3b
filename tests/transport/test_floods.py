"""Many small things in few bytes: whoever sends them waits, and nobody else does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dari.errors import DariError
from dari.mcp.client.multiplexer import MessageMultiplexer
from dari.mcp.server import Server
from dari.transport.client import http_connection
from dari.transport.connect import connect
from dari.transport.http import McpProtocol
from tests.support.heartbeat import Heartbeat
from tests.support.transports import running

HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("path", [b"/mcp", b"/health"])
async def test_one_byte_chunks_are_parsed_in_slices(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as rig, Heartbeat() as heartbeat:
        parse = heartbeat.counted(McpProtocol._parse, lambda self, data: len(data))
        monkeypatch.setattr(McpProtocol, "_parse", parse)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        head = HEAD.replace(b"/mcp", path) + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        body = b"1\r\n \r\n" * 60_000 + b"0\r\n\r\n"
        writer.write(head + body)
        answer = await reader.readuntil(b"\r\n")
        writer.transport.abort()
    assert answer.startswith(b"HTTP/1.1 ")
    assert heartbeat.most < len(body) / 2
    assert heartbeat.beats > 5


async def test_pipelined_requests_are_answered_in_order_with_turns_in_between() -> None:
    message = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    requests = [HEAD + b"Content-Length: %d\r\n\r\n" % len(message % at) + message % at for at in range(1_000, 3_000)]
    async with running() as rig, Heartbeat() as heartbeat:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(b"".join(requests) + b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        answers = await reader.read(-1)
        writer.close()
    assert answers.count(b"HTTP/1.1 400") == 2_000  # no session
    assert answers.count(b"HTTP/1.1 404") == 1
    assert heartbeat.beats > 10


async def test_lines_of_noise_on_the_socket_are_answered_with_turns_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run" / "hub.sock"
    path.parent.mkdir(mode=0o700)
    async with running(socket_path=path) as rig, Heartbeat() as heartbeat:
        monkeypatch.setattr(Server, "receive", heartbeat.counted(Server.receive))
        other = await rig.unix()
        reader, writer = await asyncio.open_unix_connection(str(path))
        reading = asyncio.create_task(reader.read(-1))
        writer.write(b"1\n" * 50_000)
        assert (await other.ask({"jsonrpc": "2.0", "id": 7, "method": "ping"}))["id"] == 7
        writer.write_eof()
        answers = await reading
        writer.close()
    assert answers.count(b"\n") == 50_000
    assert heartbeat.total > 50_000 and heartbeat.most < 25_000


@pytest.mark.parametrize(
    "body",
    [
        b"1\r\n\n\r\n" * 40_000 + b"0\r\n\r\n",
        b"%x\r\n" % (8 * 40_000) + b"data:1\n\n" * 40_000 + b"\r\n0\r\n\r\n",
    ],
    ids=["chunks", "events"],
)
async def test_an_answer_in_small_pieces_is_read_in_slices(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, Heartbeat() as heartbeat:
        fed = heartbeat.counted(http_connection.HttpConnection._received, lambda self, data: len(data))
        monkeypatch.setattr(http_connection.HttpConnection, "_received", fed)
        with pytest.raises(DariError):
            async with connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"):
                pass
    assert heartbeat.total >= len(body) / 2 and heartbeat.most < len(body) / 2


async def test_noise_of_a_server_is_read_in_slices_and_its_answer_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    script = tmp_path / "noisy.py"
    script.write_text(_NOISY)
    async with connect([sys.executable, str(script)]) as client, Heartbeat() as heartbeat:
        received: Any = heartbeat.counted(MessageMultiplexer.receive)
        monkeypatch.setattr(MessageMultiplexer, "receive", received)
        assert (await client.listing("tools")).items == []
    assert heartbeat.total > 50_000 and heartbeat.most < 25_000


async def test_bytes_after_a_response_are_not_taken_for_the_next_one() -> None:
    """The rest of a large read may wait for its turn when a response is complete: the connection is not used again."""
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while await reader.readuntil(b"\r\n\r\n"):
            asked += 1
            forged = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            body = b" " * (http_connection.PIECE_BYTES * 3)
            writer.write(b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % len(body) + body + forged * 2_000)
            break
        await reader.read(-1)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        for _ in range(3):
            with pytest.raises(DariError, match="500"):
                async with connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", mode="handshake"):
                    pass
    assert asked >= 3


_NOISY = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "x", "version": "1"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    elif asked.get("method") == "tools/list":
        sys.stdout.write("1\\n" * 50_000)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": []}}), flush=True)
"""
