"""HTTP servers at their worst: sockets that drop under load, answers of 50 MB, refusals, certificates, proxies."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

import pytest

from dari.errors import Denied, Failed, TimedOut, Unavailable
from dari.mcp.client import Client
from dari.mcp.client.errors import ServerRefused, Unauthorized
from dari.mcp.client.oauth import OAuth
from dari.transport.client import http, http_connection, http_post
from dari.transport.client.http import HttpChannel
from dari.transport.client.legacy_sse import SseChannel
from dari.transport.connect import connect
from tests.mcp.client.test_oauth import CHALLENGE, Provider
from tests.support.mcp_client import DISCOVERED, Peer, http_script
from tests.support.waiting import until


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


async def test_sockets_that_drop_under_load_lose_and_cross_no_reply() -> None:
    """The server hangs up on kept sockets at random: after an answer, or on a request it has not looked at."""
    dice = random.Random(7)
    answered: Counter[str] = Counter()
    dropped = 0

    async def handler(peer: Peer) -> None:
        nonlocal dropped
        served = 0
        while await peer.request():
            if peer.initialized():
                continue
            if served and dice.random() < 0.3:
                dropped += 1
                return
            served += 1
            wanted = peer.body["params"]["name"]
            await asyncio.sleep(dice.random() / 500)
            answered[wanted] += 1
            peer.reply(text(wanted))
            if dice.random() < 0.2:
                await peer.writer.drain()
                return

    async with http_script(handler) as url, connect(url, mode="handshake") as client:

        async def worker(number: int) -> None:
            for turn in range(25):
                name = f"{number}-{turn}"
                assert (await client.call_tool(name)).text == name

        await asyncio.gather(*(worker(number) for number in range(40)))
    assert dropped > 20
    assert len(answered) == 1000 and set(answered.values()) == {1}


async def test_a_profile_that_keeps_nothing_alive_has_a_connection_for_each_request() -> None:
    heads: list[str] = []
    connections = set()

    async def handler(peer: Peer) -> None:
        while await peer.request():  # the server would go on
            connections.add(peer.number)
            heads.append(peer.headers.get("connection", ""))
            if not peer.initialized():
                peer.reply(text("ok"))

    closing = {"Connection": "close"}
    async with http_script(handler) as url, connect(url, mode="handshake", headers=closing) as client:
        for _ in range(5):
            assert (await client.call_tool("x")).text == "ok"
    assert set(heads) == {"close"} and len(connections) == len(heads) >= 7


@pytest.mark.parametrize("kind", ["json", "events"])
async def test_an_answer_of_fifty_megabytes_arrives_whole(kind: str) -> None:
    big = "x" * (50 * 1024 * 1024)

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.initialized():
                continue
            if kind == "json":
                peer.reply(text(big))
            else:
                peer.stream()
                peer.chunk(peer.answer(text(big)))
                peer.end()
            await peer.writer.drain()

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert len((await client.call_tool("x")).text) == len(big)
        assert len((await client.call_tool("x")).text) == len(big)


async def test_more_than_the_limit_is_refused_while_it_comes_and_the_next_call_works() -> None:
    sent = 0

    async def handler(peer: Peer) -> None:
        nonlocal sent
        while await peer.request():
            if peer.initialized():
                continue
            if peer.body["params"]["name"] == "small":
                peer.reply(text("ok"))
                continue
            peer.stream()
            while True:  # it would never end
                peer.chunk(b"data: " + b"x" * 65536)
                sent += 65536
                await peer.writer.drain()

    limit = 4 * 1024 * 1024
    async with http_script(handler) as url, Client(HttpChannel(url, most_bytes=limit), mode="handshake") as client:
        with pytest.raises(Failed, match="4194304") as caught:
            await client.call_tool("big")
        assert caught.value.hint == "ask for less at once"
        assert (await client.call_tool("small")).text == "ok"
    assert sent < 64 * 1024 * 1024


@pytest.mark.parametrize(("status", "error"), [(401, Unauthorized), (403, Denied)])
async def test_a_refusal_gives_the_hint_of_the_profile_and_never_our_token(status: int, error: Any) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            peer.respond(status, f"bad token {peer.headers['authorization']}".encode())

    async with http_script(handler) as url:
        channel = HttpChannel(url, bearer="s3cr3t-t0ken", denied_hint="check apiKey of 'x'")
        with pytest.raises(error) as caught:
            await Client(channel, mode="handshake").open()
    assert caught.value.hint == "check apiKey of 'x'"
    assert "s3cr3t-t0ken" not in caught.value.message and "bad token" in caught.value.message


async def test_a_redirect_to_another_origin_never_sees_the_token() -> None:
    elsewhere: list[dict[str, str]] = []

    async def trap(peer: Peer) -> None:
        while await peer.request():
            elsewhere.append(peer.headers)
            peer.respond(200, b"{}")

    async with http_script(trap) as there:

        async def handler(peer: Peer) -> None:
            while await peer.request():
                peer.respond(307, location=there)

        async with http_script(handler) as url:
            with pytest.raises(ServerRefused):
                await connect(url, bearer="s3cr3t", mode="handshake").open()
    assert elsewhere == []


async def test_a_server_that_speaks_no_tls_is_told_apart_from_one_that_is_away() -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(10)
        peer.writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with http_script(handler) as url:
        with pytest.raises(Unavailable) as caught:
            await connect(url.replace("http:", "https:"), mode="handshake").open()
    assert "http://" in caught.value.hint and "_ssl.c" not in caught.value.message


async def test_a_proxy_in_the_environment_is_not_used_behind_the_persons_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if not peer.initialized():
                peer.reply(text(peer.target))

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x")).text == "/mcp"


async def test_the_old_stream_asks_for_a_token_too() -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.target == "/token":
                peer.respond(200, b'{"access_token":"good-1"}', content_type="application/json")
            elif peer.headers.get("authorization") != "Bearer good-1":
                peer.respond(401, b"no", www_authenticate=CHALLENGE)
            elif peer.method == "GET":
                peer.stream()
                peer.chunk(b"event: endpoint\ndata: /mcp\n\n")
                streams.append(peer)
            else:
                peer.respond(202)
                if "id" in peer.body:
                    result = DISCOVERED if peer.body["method"] == "server/discover" else handshake
                    message = {"jsonrpc": "2.0", "id": peer.body["id"], "result": result}
                    streams[-1].chunk(f"data: {json.dumps(message)}\n\n".encode())

    streams: list[Peer] = []
    handshake = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}
    async with http_script(handler) as url:
        provider = Provider(url)
        channel = SseChannel(url, oauth=OAuth(url, lambda: provider))
        async with Client(channel, mode="handshake") as client:
            assert client.agreement.server.name == "old"
        assert provider.flows == 1
        with pytest.raises(Unauthorized):
            await Client(SseChannel(url), mode="handshake").open()


@pytest.mark.parametrize("endless", [b"x-trailer: 1\r\n", b"x"], ids=["trailers", "one trailer"])
async def test_trailers_without_end_are_cut_off(endless: bytes) -> None:
    sent = 0

    async def handler(peer: Peer) -> None:
        nonlocal sent
        while await peer.request():
            if peer.initialized():
                continue
            if peer.body["params"]["name"] == "small":
                peer.reply(text("ok"))
                continue
            peer.stream()
            peer.writer.write(b"0\r\n")
            part = endless * (65536 // len(endless))
            while True:
                peer.writer.write(part)
                sent += len(part)
                await peer.writer.drain()

    async with http_script(handler) as url, connect(url, mode="handshake", timeout_s=20) as client:
        with pytest.raises(Unavailable, match="too long"):
            await client.call_tool("big")
        assert (await client.call_tool("small")).text == "ok"
    assert sent < 64 * 1024 * 1024


async def test_an_answer_in_very_small_parts_is_whole_and_costs_about_its_size(monkeypatch: Any) -> None:
    big, most = "x" * 5000, 0
    keep = http_post.Post.data

    def data(self: http_post.Post, part: bytes) -> None:
        nonlocal most
        keep(self, part)
        most = max(most, len(self._parts))

    monkeypatch.setattr(http_post.Post, "data", data)

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.initialized():
                continue
            body = json.dumps({"jsonrpc": "2.0", "id": peer.body["id"], "result": text(big)}).encode()
            head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            peer.writer.write(head.encode())
            for at in range(0, len(body), 2):
                peer.chunk(body[at : at + 2])
            peer.end()

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x")).text == big
    assert most <= http_post.MAX_PARTS + 1


async def test_a_server_that_asks_and_takes_no_answer_gets_a_bounded_number_of_connections(monkeypatch: Any) -> None:
    monkeypatch.setattr(http_connection, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr(http_connection, "MAX_URGENT_CONNECTIONS", 3)
    monkeypatch.setattr(http, "MAX_UNTAKEN", 20)
    connections: set[int] = set()
    asked, untaken = asyncio.Event(), 0

    async def handler(peer: Peer) -> None:
        nonlocal untaken
        connections.add(peer.number)
        while await peer.request():
            if peer.initialized():
                continue
            if peer.body.get("method") != "tools/call":
                untaken += 1
                await asked.wait()  # what we answer to a ping is not taken
                peer.respond(202)
                continue
            peer.stream()
            for number in range(500):
                peer.chunk(b'data: {"jsonrpc":"2.0","id":"p%d","method":"ping"}\n\n' % number)
            peer.chunk(peer.answer(text("ok")))
            peer.end()

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x")).text == "ok"
        await until(lambda: untaken >= 4)
        assert len(connections) <= 7
        asked.set()
        assert (await client.call_tool("x")).text == "ok"
    assert untaken <= 2 * 20


async def test_a_call_that_is_given_up_while_it_waits_for_a_connection_leaves_no_task(monkeypatch: Any) -> None:
    monkeypatch.setattr(http_connection, "MAX_CONNECTIONS", 1)
    arrived, go = asyncio.Event(), asyncio.Event()

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.initialized():
                continue
            if "id" not in peer.body:
                peer.respond(202)
                continue
            arrived.set()
            await go.wait()
            peer.reply(text("ok"))

    async with http_script(handler) as url:
        channel = HttpChannel(url)
        async with Client(channel, mode="handshake") as client:
            first = asyncio.ensure_future(client.call_tool("x"))
            await arrived.wait()
            before = len(channel._tasks)
            for _ in range(3):
                with pytest.raises(TimedOut):
                    await client.call_tool("x", timeout_s=0.01)
            await until(lambda: len(channel._tasks) == before)
            go.set()
            assert (await first).text == "ok"
