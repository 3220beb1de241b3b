"""Sessions over HTTP: which headers go out, and what happens when a server forgets."""

from __future__ import annotations

import json

import pytest

from dari.errors import Unavailable
from dari.mcp.client.errors import ServerRefused
from dari.transport.connect import connect
from tests.support.mcp_client import Peer, http_script
from tests.support.waiting import until

TEXT = {"content": [{"type": "text", "text": "ok"}]}


async def test_headers_and_versions_are_sent_as_the_era_wants() -> None:
    seen: list[tuple[str, dict[str, str]]] = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            seen.append((peer.body.get("method", peer.method), peer.headers))
            if peer.body.get("method") == "server/discover":
                peer.respond(404)
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, headers={"X-Key": " k ", "User-Agent": "me"}) as client:
        await client.call_tool("x")
    heads = dict(seen)
    assert heads["server/discover"]["mcp-protocol-version"] == "2026-07-28"
    assert heads["server/discover"]["mcp-method"] == "server/discover"
    assert "mcp-protocol-version" not in heads["initialize"] and "mcp-session-id" not in heads["initialize"]
    assert heads["initialize"]["accept"] == "application/json, text/event-stream"
    for method in ("notifications/initialized", "tools/call", "DELETE"):
        assert heads[method]["mcp-protocol-version"] == "2025-11-25"
        assert heads[method]["mcp-session-id"] == "s1"
        assert (heads[method]["x-key"], heads[method]["user-agent"]) == ("k", "me")
        assert "mcp-method" not in heads[method]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
async def test_the_oldest_revisions_get_no_version_header(version: str) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            assert "mcp-protocol-version" not in peer.headers
            if peer.body.get("method") == "initialize":
                info = {"name": "old", "version": "1"}
                peer.reply({"protocolVersion": version, "capabilities": {}, "serverInfo": info})
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        await client.call_tool("x")


@pytest.mark.parametrize("body", [b'{"error":"No valid session ID provided"}', b"Session not found"])
async def test_a_session_that_is_refused_with_400_is_renewed_too(body: bytes) -> None:
    sessions = iter(("old", "new"))

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.body.get("method") == "tools/call" and peer.headers["mcp-session-id"] == "old":
                peer.respond(400, body)
            elif peer.body.get("method") == "initialize":
                peer.initialized(next(sessions))
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x")).text == "ok"


async def test_a_session_is_renewed_once_and_not_in_circles() -> None:
    count = 0

    async def handler(peer: Peer) -> None:
        nonlocal count
        while await peer.request():
            count += peer.body.get("method") == "initialize"
            if not peer.initialized(f"s{count}"):
                peer.respond(404)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(Unavailable):
            await client.call_tool("x")
    assert count == 2


async def test_a_renewal_that_fails_is_tried_again_by_the_next_call() -> None:
    sessions = 0
    is_down = False

    async def handler(peer: Peer) -> None:
        nonlocal sessions
        while await peer.request():
            method = peer.body.get("method")
            if method == "initialize" and is_down:
                peer.respond(503)
            elif method == "initialize":
                sessions += 1
                peer.initialized(f"s{sessions}")
            elif method == "tools/call" and peer.headers.get("mcp-session-id") != "s2":
                peer.respond(404)
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        is_down = True
        for _ in range(2):
            with pytest.raises(ServerRefused, match="HTTP 503"):
                await client.call_tool("x")
        is_down = False
        assert (await client.call_tool("x")).text == "ok"
    assert sessions == 2


@pytest.mark.parametrize("session", ["s1", ""])
async def test_a_server_without_a_stream_for_get_is_not_initialized_again(session: str) -> None:
    """Express answers a route that it does not have with 404, which is also the answer to a forgotten session."""
    seen: list[str] = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            seen.append(peer.body.get("method", peer.method))
            if peer.method == "GET":
                peer.respond(404, b"Cannot GET /mcp")
            elif not peer.initialized(session):
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake", on_event=lambda event: None) as client:
        await until(lambda: "GET" in seen)
        for _ in range(5):
            assert (await client.call_tool("x")).text == "ok"
    assert (seen.count("initialize"), seen.count("GET")) == (1, 1)


@pytest.mark.parametrize("refused", ["logging/setLevel", "resources/subscribe"])
async def test_a_session_is_renewed_also_where_the_server_refuses_what_belonged_to_the_old_one(refused: str) -> None:
    sessions = 0
    has_forgotten = False

    async def handler(peer: Peer) -> None:
        nonlocal sessions
        while await peer.request():
            method = peer.body.get("method")
            if method == "initialize":
                sessions += 1
                peer.initialized(f"s{sessions}")
            elif has_forgotten and peer.headers.get("mcp-session-id") == "s1":
                peer.respond(404)
            elif has_forgotten and method == refused:
                error = {"code": -32002, "message": "it is gone"}
                body = json.dumps({"jsonrpc": "2.0", "id": peer.body["id"], "error": error}).encode()
                peer.respond(200, body, content_type="application/json")
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        if refused == "logging/setLevel":
            await client.set_level("error")
        else:
            await client._session.subscribe("demo://x", 5.0)
        has_forgotten = True
        for _ in range(3):
            assert (await client.call_tool("x")).text == "ok"
    assert sessions == 2
