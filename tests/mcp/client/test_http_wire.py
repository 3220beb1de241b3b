"""HTTP by the byte: kept connections that die, redirects, odd responses, limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dari.errors import Denied, Failed, TimedOut, Unavailable
from dari.mcp.client import Client, RemoteError
from dari.mcp.client.errors import ServerRefused
from dari.transport.client import http_connection
from dari.transport.client.http import HttpChannel
from dari.transport.connect import connect
from tests.support.mcp_client import DISCOVERED, Peer, http_script

TEXT = {"content": [{"type": "text", "text": "ok"}]}


async def test_a_kept_connection_that_the_server_has_dropped_is_replaced() -> None:
    calls = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if not peer.initialized():
                calls.append(peer.number)
                peer.reply(TEXT)
                await peer.writer.drain()
                return  # hang up without a word, as a server does after its keep-alive time

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        for _ in range(4):
            assert (await client.call_tool("x")).text == "ok"
    assert len(calls) == 4


async def test_a_request_that_got_no_byte_back_on_a_kept_connection_is_sent_once_more() -> None:
    seen: list[tuple[int, str]] = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.initialized():
                continue
            name = peer.body["params"]["name"]
            seen.append((peer.number, name))
            if [called for _, called in seen].count("second") == 1:
                return  # the request was read, nothing was said
            peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        await client.call_tool("first")
        await client.call_tool("second")
    (kept, _), (dropped, _), (fresh, _) = seen
    assert kept == dropped != fresh


async def test_a_new_connection_that_is_dropped_is_not_tried_again() -> None:
    seen = []

    async def handler(peer: Peer) -> None:
        await peer.request()
        seen.append(peer.body["method"])

    async with http_script(handler) as url:
        with pytest.raises(Unavailable):
            await connect(url, mode="handshake").open()
    assert seen == ["initialize"]


async def test_a_response_that_has_begun_is_never_repeated() -> None:
    calls = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.initialized():
                continue
            calls.append(1)
            peer.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\ncontent-type: application/json\r\n\r\n{")
            await peer.writer.drain()
            return

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(Unavailable) as caught:
            await client.call_tool("x")
    assert caught.value.hint == "the request may have run"
    assert len(calls) == 1


async def test_the_time_that_a_server_keeps_connections_is_respected() -> None:
    connections = set()

    async def handler(peer: Peer) -> None:
        connections.add(peer.number)
        while await peer.request():
            if not peer.initialized():
                peer.reply(TEXT, keep_alive="timeout=1, max=100")

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        before = len(connections)
        await client.call_tool("x")
        await client.call_tool("x")
        assert len(connections) == before + 1


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed_with_method_and_body(status: int) -> None:
    targets = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            targets.append(f"{peer.method} {peer.target}")
            if peer.target == "/mcp":
                peer.respond(status, location="/mcp/?x=1")
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x")).text == "ok"
    assert targets[:2] == ["POST /mcp", "POST /mcp/?x=1"]
    assert set(targets[2:]) == {"POST /mcp/?x=1", "DELETE /mcp/?x=1"}


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (307, "http://127.0.0.1:1/mcp?key=secret"),
        (308, "https://127.0.0.1/mcp"),
        (302, "/elsewhere"),
        (301, "/mcp/"),
        (307, "http://["),
    ],
)
async def test_any_other_redirect_is_named_and_not_followed(status: int, location: str) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            assert peer.target == "/mcp"
            peer.respond(status, location=location)

    async with http_script(handler) as url:
        with pytest.raises(ServerRefused) as caught:
            await connect(url, mode="handshake").open()
    assert caught.value.status == status
    assert "secret" not in caught.value.message


async def test_a_redirect_in_circles_ends() -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            peer.respond(307, location="/mcp")

    async with http_script(handler) as url:
        with pytest.raises(ServerRefused):
            await connect(url, mode="handshake").open()


@pytest.mark.parametrize("status", [400, 404, 405, 406, 415, 500])
async def test_a_status_without_json_rpc_to_the_probe_means_the_handshake(status: int) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.body.get("method") == "server/discover":
                peer.respond(status, b"<h1>no</h1>", content_type="text/html")
            else:
                peer.initialized()

    async with http_script(handler) as url, connect(url) as client:
        assert client.era == "handshake"


@pytest.mark.parametrize(
    ("status", "error", "hint"),
    [
        (403, Denied, "access"),
        (404, ServerRefused, "check the URL"),
        (413, ServerRefused, "smaller"),
        (429, ServerRefused, "in 7 s"),
        (500, ServerRefused, "later"),
    ],
)
async def test_a_status_is_an_error_with_a_next_step(status: int, error: Any, hint: str) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if not peer.initialized(session=""):
                peer.respond(status, b"\x1b[31m reason", retry_after="7" if status == 429 else "")

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(error, match=f"HTTP {status}") as caught:
            await client.call_tool("x")
    assert hint in caught.value.hint
    assert "reason" in caught.value.message and "\x1b" not in caught.value.message


async def test_a_json_rpc_error_below_an_http_status_keeps_its_code() -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.body.get("method") == "server/discover":
                peer.reply(DISCOVERED)
            else:
                body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad","data":{"hint":"fix it"}}}'
                peer.respond(400, body, content_type="application/json")

    async with http_script(handler) as url, connect(url) as client:
        with pytest.raises(RemoteError, match="bad") as caught:
            await client.call_tool("x")
    assert (caught.value.remote_code, caught.value.hint) == (-32602, "fix it")


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n%b",
        b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n%b",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n%b",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\ndata: %b\n\n",
    ],
)
async def test_a_body_without_a_length_ends_with_its_connection(response: bytes) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if not peer.initialized():
                body = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % peer.body["id"]
                peer.writer.write(response % body)
                await peer.writer.drain()
                return

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x")).content == []


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_an_error(garbage: bytes) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        for at in range(0, len(garbage), 8192):
            peer.writer.write(garbage[at : at + 8192])
            await peer.writer.drain()
            await asyncio.sleep(0)

    async with http_script(handler) as url:
        with pytest.raises(Unavailable):
            await connect(url, mode="handshake").open()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_above_the_limit_is_cut_off(kind: str) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if not peer.initialized():
                start = b"data: " if "event" in kind else b""
                peer.respond(200, start + b'{"result":"' + b"x" * 300_000 + b'"}', content_type=kind)

    async with http_script(handler) as url:
        channel = HttpChannel(url, most_bytes=100_000)
        async with Client(channel, mode="handshake") as client:
            with pytest.raises(Failed, match="100000"):
                await client.call_tool("x")


async def test_an_answer_to_something_else_does_not_leave_the_caller_waiting() -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if not peer.initialized():
                peer.respond(200, b'{"jsonrpc":"2.0","id":99999,"result":{}}', content_type="application/json")

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(Failed):
            await client.call_tool("x")


async def test_accepted_is_no_answer_to_a_request() -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if not peer.initialized():
                peer.respond(202)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(Failed, match="HTTP 202"):
            await client.call_tool("x")


async def test_a_server_that_accepts_nobody_runs_into_the_limit_of_connecting() -> None:
    async def say_nothing(peer: Peer) -> None:
        await peer.reader.read()

    async with http_script(say_nothing) as url:
        channel = HttpChannel(url.replace("http:", "https:"), connect_timeout_s=0.05)
        with pytest.raises(TimedOut):
            await Client(channel, mode="handshake").open()


async def test_a_limited_pool_serves_everybody_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "MAX_CONNECTIONS", 3)
    busy = most = 0

    async def handler(peer: Peer) -> None:
        nonlocal busy, most
        while await peer.request():
            if peer.initialized():
                continue
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.005)
            busy -= 1
            peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        results = await asyncio.gather(*(client.call_tool("x") for _ in range(40)))
    assert len(results) == 40
    assert most <= 3
