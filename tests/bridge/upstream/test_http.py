"""Servers behind an address: both eras, the older transport, a fallback that is really used, a circuit that opens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dari.errors import DariError, Denied, Unavailable
from tests.support.bridge import ME, Place, text_of
from tests.support.demo_server import demo_server
from tests.support.mcp_client import Peer, http_script, serving

pytestmark = pytest.mark.local_mcp

ECHO = json.dumps({"text": "hi"}).encode()


def http(url: str, **fields: Any) -> dict[str, Any]:
    return {"id": "far", "baseUrl": url, **fields}


@pytest.mark.parametrize("protocol", ["auto", "legacy", "2026-07-28"])
async def test_a_server_of_either_era_is_listed_and_called(tmp_path: Path, protocol: str) -> None:
    async with serving(demo_server()) as hub:
        place = Place(tmp_path, http(hub.url, protocol=protocol))
        async with place.upstream("far") as server:
            assert "demo_echo" in {tool.name for tool in await server.tools()}
            result = json.loads(bytes(await server.call_tool("demo_echo", ECHO, ME)))
            assert result["structuredContent"] == {"text": "hi", "times": 1}
            assert server.status().era == ("handshake" if protocol == "legacy" else "stateless")


async def test_the_address_may_be_given_with_or_without_its_end(tmp_path: Path) -> None:
    async with serving(demo_server()) as hub:
        for url in (hub.url, hub.url.removesuffix("/mcp"), hub.url.removesuffix("/mcp") + "/"):
            async with Place(tmp_path, http(url)).upstream("far") as server:
                assert await server.call_tool("demo_echo", ECHO, ME)


async def test_an_endpoint_needs_no_profile(tmp_path: Path) -> None:
    async with serving(demo_server()) as hub:
        place = Place(tmp_path)
        async with place.bridge() as bridge:
            server = bridge.view(place.around()).upstream(endpoint=hub.url)
            assert await server.call_tool("demo_echo", ECHO, ME)


async def test_key_and_headers_of_the_command_line_win(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            seen.append(peer.headers)
            peer.respond(401)

    async with http_script(handler) as url:
        place = Place(tmp_path, http(url, apiKey="${KEY}", headers={"X-Team": "red", "X-Other": "1"}))
        async with place.bridge() as bridge:
            view = bridge.view(place.around(KEY="from-profile"))
            with pytest.raises(Denied):
                await view.upstream("far").tools()
            with pytest.raises(Denied):
                await view.upstream("far", key="from-cli", headers=["x-team: blue"]).tools()
    assert (seen[0]["authorization"], seen[0]["x-team"]) == ("Bearer from-profile", "red")
    assert (seen[-1]["authorization"], seen[-1]["x-team"], seen[-1]["x-other"]) == ("Bearer from-cli", "blue", "1")


async def test_a_fallback_address_takes_over_and_gives_back(tmp_path: Path) -> None:
    async with serving(demo_server()) as spare:
        first = demo_server()
        hub_port = None
        async with serving(first) as hub:
            hub_port = hub.url
            entry = http(
                hub.url, fallbackUrl=spare.url, circuit={"failures": 5, "recoverMs": 1}, toolsCacheTtlMs=60_000
            )
            place = Place(tmp_path, entry)
            context = place.upstream("far")
            server = await context.__aenter__()
            assert await server.call_tool("demo_echo", ECHO, ME)
            assert server.status().url == hub.url
        try:
            assert await server.call_tool("demo_echo", ECHO, ME)
            assert server.status().url == spare.url != hub_port
        finally:
            await context.__aexit__(None, None, None)


async def test_a_server_that_is_down_is_left_alone_after_a_while(tmp_path: Path) -> None:
    async with http_script(_refuse) as url:
        pass  # the port is free now
    entry = http(url, circuit={"failures": 2, "recoverMs": 60_000})
    async with Place(tmp_path, entry).upstream("far") as server:
        await server._lists.take("tools", await _listing())
        for _ in range(2):
            with pytest.raises(Unavailable):
                await server.call_tool("t", b"{}", ME)
        with pytest.raises(Unavailable, match="2 times") as refused:
            await server.call_tool("t", b"{}", ME)
        assert server.status().circuit == "open"
        assert "dari remote test far" in refused.value.hint


async def test_a_server_of_the_older_transport_is_found_by_itself(tmp_path: Path) -> None:
    """Streamable HTTP first; a POST that is answered with 405 means the event stream of 2024-11-05."""
    stream: asyncio.Queue[bytes] = asyncio.Queue()

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                peer.stream()
                peer.chunk(b"event: endpoint\ndata: /messages?id=1\n\n")
                while True:
                    peer.chunk(b"event: message\ndata: " + await stream.get() + b"\n\n")
            elif peer.target.startswith("/messages"):
                peer.respond(202)
                results = {
                    "initialize": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}},
                    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
                    "tools/call": {"content": [{"type": "text", "text": "old"}]},
                }
                if "id" in peer.body:
                    reply = {"jsonrpc": "2.0", "id": peer.body["id"], "result": results[peer.body["method"]]}
                    stream.put_nowait(json.dumps(reply).encode())
            else:
                peer.respond(405)

    async with http_script(handler) as url:
        place = Place(tmp_path, {"id": "far", "url": url})
        async with place.upstream("far") as server:
            assert text_of(await server.call_tool("t", b"{}", ME)) == "old"
            assert server._lists.known.flavour == "sse"


async def test_a_server_that_drops_idle_connections_loses_nothing(tmp_path: Path) -> None:
    served = 0

    async def handler(peer: Peer) -> None:
        nonlocal served
        for _ in range(2):  # two requests, then the connection is dropped without a word
            if not await peer.request():
                return
            if peer.initialized():
                continue
            method = peer.body.get("method")
            if method == "tools/list":
                peer.reply({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
            elif method == "tools/call":
                served += 1
                peer.reply({"content": [{"type": "text", "text": peer.body["params"]["arguments"]["n"]}]})
            else:
                peer.respond(405)

    async with http_script(handler) as url, Place(tmp_path, http(url, protocol="legacy")).upstream("far") as server:
        for round_ in range(5):
            numbers = [f"{round_}-{n}" for n in range(10)]
            given = [json.dumps({"n": number}).encode() for number in numbers]
            results = await asyncio.gather(*(server.call_tool("t", one, ME) for one in given))
            assert [text_of(result) for result in results] == numbers
    assert served == 50


async def _refuse(peer: Peer) -> None:
    raise DariError("nobody should come")


async def _listing() -> Any:
    from msgspec import Raw

    from dari.mcp.client.results import ListResult

    return ListResult(items=[Raw(b'{"name":"t","inputSchema":{"type":"object"}}')])
