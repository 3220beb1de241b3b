"""WebSocket through the proxy: a real client and server, plain and decrypted, with a tap that changes nothing."""

from __future__ import annotations

import os
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, Request, TextMessage
from wsproto.extensions import PerMessageDeflate

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.hooks import NoRules
from dari.proxy.engine.websocket import KEPT_BYTES, KEPT_FRAMES, WebSocketTap
from dari.proxy.flow import SAMPLE_BYTES, Flow
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import FAST, Memory, proxy, request, wire

OURS = CertificateAuthority.generate()
THEIRS = CertificateAuthority.generate()
TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9


async def echo(socket: ServerConnection) -> None:
    async for message in socket:
        await socket.send(message)


@pytest.mark.parametrize("is_secure", [False, True], ids=["ws", "wss"])
@pytest.mark.parametrize("compression", ["deflate", None])
async def test_messages_pass_and_are_seen(is_secure: bool, compression: Any, tmp_path: Path) -> None:
    memory = Memory()
    (tmp_path / "roots.pem").write_bytes(THEIRS.pem)
    config = replace(FAST, ca_file=str(tmp_path / "roots.pem"))
    ours = ssl.create_default_context(cadata=OURS.pem.decode()) if is_secure else None
    theirs = THEIRS.context_for("localhost") if is_secure else None
    ports: dict[str, Any] = {"rules": NoRules(True), "authority": OURS}
    async with serve(echo, "127.0.0.1", 0, ssl=theirs) as server, proxy(config, memory, **ports) as engine:
        port = next(iter(server.sockets)).getsockname()[1]
        assert engine.address is not None
        url = f"{'wss' if is_secure else 'ws'}://localhost:{port}/chat"
        through = f"http://127.0.0.1:{engine.address[1]}"
        async with connect(url, proxy=through, ssl=ours, compression=compression) as socket:
            sent: list[str | bytes] = ["hello", "hello hello", b"\x00\x01" * 50_000, "한글" * 10, ""]
            for message in sent:
                await socket.send(message)
                assert await socket.recv() == message
        flow = await memory.flow()
        assert (flow.status, flow.scheme) == (101, "https" if is_secure else "http")
        assert flow.frames is not None and flow.error is None
        seen = [(one.from_client, one.payload, one.size_bytes) for one in flow.frames if one.opcode in (TEXT, BINARY)]
        expected = []
        for message in sent:
            data = message if isinstance(message, bytes) else message.encode()
            expected += [(side, data[:SAMPLE_BYTES], len(data)) for side in (True, False)]
        assert seen == expected
        assert [one.opcode for one in flow.frames].count(CLOSE) == 2
        assert memory.frames == flow.frames


async def test_a_refused_upgrade_is_an_ordinary_response() -> None:
    async with origin() as there, proxy() as engine, wire(engine) as line:
        reply = await line.get(there.url(), "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
        assert reply.body == b"ok"
        seen = there.requests[0]
        assert (seen.header("connection"), seen.header("upgrade")) == ("Upgrade", "websocket")
        assert await line.is_open(there.url())


async def test_bytes_behind_101_belong_to_the_new_protocol() -> None:
    frame = b"\x81\x05hello"

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + frame)
        assert await line.reader.readexactly(2) == b"\x88\x00"

    memory = Memory()
    async with origin(handle) as there, proxy(recorder=memory) as engine, wire(engine) as line:
        await line.send(request(there.url(), "Connection: Upgrade", "Upgrade: websocket"))
        assert (await line.head()).header("upgrade") == "websocket"
        assert await line.reader.readexactly(7) == frame
        await line.send(b"\x88\x00")
        assert await line.rest() == b""
        line.close()
        flow = await memory.flow()
        assert [(one.opcode, one.payload) for one in flow.frames or []] == [(TEXT, b"hello"), (CLOSE, b"")]


def tap(extensions: bytes = b"") -> tuple[Flow, WebSocketTap]:
    flow = Flow(1, "p", 0, "GET", "http", "a", "/")
    return flow, WebSocketTap(flow, [(b"Sec-WebSocket-Extensions", extensions)], None)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_frames_are_the_same_in_any_pieces(size: int) -> None:
    client = WSConnection(ConnectionType.CLIENT)
    server = WSConnection(ConnectionType.SERVER)
    deflate = PerMessageDeflate()
    server.receive_data(client.send(Request(host="a", target="/", extensions=[PerMessageDeflate()])))
    list(server.events())
    client.receive_data(server.send(AcceptConnection(extensions=[deflate])))
    accepted = next(iter(client.events()))
    assert isinstance(accepted, AcceptConnection)
    data = b"".join(
        (
            client.send(TextMessage("first ", message_finished=False)),
            client.send(Ping(b"now")),
            client.send(TextMessage("second")),
            client.send(BytesMessage(b"x" * 70_000)),
            client.send(BytesMessage(b"x" * 70_000)),
            client.send(CloseConnection(1000, "bye")),
        )
    )
    flow, tapped = tap(b"permessage-deflate")
    for start in range(0, len(data), size):
        tapped.feed(True, data[start : start + size])
    assert [(one.opcode, one.size_bytes) for one in flow.frames or []] == [
        (PING, 3), (TEXT, 12), (BINARY, 70_000), (BINARY, 70_000), (CLOSE, 5),
    ]  # fmt: skip
    assert (flow.frames or [])[1].payload == b"first second"
    assert (flow.frames or [])[3].payload == b"x" * SAMPLE_BYTES


def test_the_newest_frames_are_kept() -> None:
    flow, tapped = tap()
    for number in range(KEPT_FRAMES + 5):
        tapped.feed(False, b"\x82\x04" + number.to_bytes(4, "big"))
    assert flow.frames is not None and len(flow.frames) == KEPT_FRAMES
    assert flow.frames[-1].payload == (KEPT_FRAMES + 4).to_bytes(4, "big")


def test_a_bomb_is_not_inflated() -> None:
    import zlib

    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packed.compress(bytes(64 << 20)) + packed.flush(zlib.Z_SYNC_FLUSH)
    flow, tapped = tap(b"permessage-deflate")
    tapped.feed(False, b"\xc2\x7f" + len(data).to_bytes(8, "big") + data)
    frame = (flow.frames or [])[0]
    assert len(frame.payload) == SAMPLE_BYTES and frame.size_bytes < 8 << 20


def test_noise_is_survived() -> None:
    for seed in range(50):
        _, tapped = tap(b"permessage-deflate")
        for _ in range(20):
            tapped.feed(bool(seed % 2), os.urandom(100))


async def test_an_unasked_switch_ends_the_origin_and_not_the_client() -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
        await line.reader.read()

    async with origin(handle) as there, origin() as good, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url(), "Connection: Upgrade", "Upgrade: websocket")).status == 502
        assert await line.is_open(good.url())


def test_large_messages_are_kept_up_to_a_bound_for_each_flow() -> None:
    flow, tapped = tap()
    message = bytes(SAMPLE_BYTES)
    for number in range(KEPT_FRAMES):
        tapped.feed(False, b"\x82\x7e" + (SAMPLE_BYTES).to_bytes(2, "big") + message[:-2] + number.to_bytes(2, "big"))
    kept = flow.frames or []
    assert sum(len(frame.payload) for frame in kept) == KEPT_BYTES
    assert kept[-1].payload[-2:] == (KEPT_FRAMES - 1).to_bytes(2, "big")
