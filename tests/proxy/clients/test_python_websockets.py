"""The `websockets` client through the proxy: ws and wss, read on the way or tunnelled unread."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedOK

from tests.support.proxy_lab import Lab, lab

KINDS = [("http", "ws"), ("https", "wss")]


def dial(here: Lab, scheme: str, trusted: Path, **options: Any) -> connect:
    url = here.url("/ws", scheme).replace("http", "ws", 1)
    context = ssl.create_default_context(cafile=str(trusted)) if scheme == "https" else None
    return connect(url, proxy=here.proxy_url, ssl=context, open_timeout=20, close_timeout=20, **options)


async def talk(socket: ClientConnection) -> None:
    await socket.send("hello " * 100)
    assert await socket.recv() == "hello " * 100
    await socket.send(bytes(range(256)) * 2000)
    assert await socket.recv() == bytes(range(256)) * 2000
    await socket.send(["frag", "ment", "ed"])
    assert await socket.recv() == "fragmented"
    pong = await socket.ping()
    await pong


@pytest.mark.parametrize("compression", ["deflate", None])
@pytest.mark.parametrize(("scheme", "name"), KINDS)
async def test_messages_are_echoed_and_recorded(scheme: str, name: str, compression: Any, tmp_path: Path) -> None:
    async with lab(tmp_path) as here:
        async with dial(here, scheme, here.ca_file, compression=compression) as socket:
            assert bool(socket.protocol.extensions) == (compression is not None)
            await talk(socket)
        flow = await here.flow("/ws")
        assert (flow.status, flow.scheme, flow.error) == (101, scheme, None)
        assert flow.frames is not None
        texts = [(frame.from_client, frame.payload) for frame in flow.frames if frame.opcode == 1]
        assert texts == [(side, text) for text in (b"hello " * 100, b"fragmented") for side in (True, False)]
        binary = [frame for frame in flow.frames if frame.opcode == 2]
        assert [frame.size_bytes for frame in binary] == [512_000, 512_000]
        assert {9, 10, 8} <= {frame.opcode for frame in flow.frames}


@pytest.mark.parametrize(("scheme", "name"), KINDS)
async def test_a_tunnel_that_is_not_decrypted_carries_them_too(scheme: str, name: str, tmp_path: Path) -> None:
    async with lab(tmp_path, decrypts=False) as here:
        async with dial(here, scheme, here.origin_ca_file) as socket:
            await talk(socket)
        flow = await here.memory.flow()
        assert (flow.event, flow.frames, flow.is_encrypted) == ("tunnel", None, True)


async def test_a_socket_outlives_requests_on_other_connections(tmp_path: Path) -> None:
    async with lab(tmp_path) as here:
        async with dial(here, "https", here.ca_file) as first, dial(here, "http", here.ca_file) as second:
            for text in ("one", "two", "three"):
                await first.send(text)
                await second.send(text)
                assert (await first.recv(), await second.recv()) == (text, text)
            assert here.memory.done == []
            await first.close(4000, "enough")
            with pytest.raises(ConnectionClosedOK):
                await second.close()
                await second.recv()
        await here.memory.flow(2)
        closes = [f.payload for flow in here.memory.done for f in flow.frames or () if f.opcode == 8 and f.from_client]
        assert sorted(closes) == [b"\x03\xe8", b"\x0f\xa0enough"]
