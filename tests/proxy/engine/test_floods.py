"""Many small things in few bytes: they are worked on in slices, and whoever sends nothing else is sent away."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from dari.proxy.engine.http2 import session
from dari.proxy.engine.http2.framing import FrameCutter
from dari.proxy.engine.upstream import MAX_INTERIM, UpstreamConnection
from dari.proxy.engine.websocket import WebSocketTap
from dari.proxy.flow import Flow
from tests.support.heartbeat import Heartbeat
from tests.support.origins.origin import origin
from tests.support.proxy_engine import Memory, proxy
from tests.support.proxy_engine_h2 import OLD_TLS, decrypting, h2_client

CHUNKS = 60_000


def frame(kind: int, payload: bytes = b"", *, stream: int = 0, flags: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


FLOODS = {
    "WINDOW_UPDATE": frame(8, b"\0\0\0\x01"),
    "WINDOW_UPDATE of a stream that is over": frame(8, b"\0\0\0\x01", stream=1),
    "PING": frame(6, b"12345678"),
    "SETTINGS": frame(4, b"\0\x03\0\0\0\x64"),
    "PRIORITY": frame(2, b"\0\0\0\0\x10", stream=1),
    "unknown frames": frame(250, b"x"),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_of_frames_is_met_in_slices_and_ended(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Heartbeat() as heartbeat, origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            assert (await client.answer(client.ask("localhost"))).body == b"ok"
            cut = FrameCutter.cut

            def counted(self: FrameCutter, data: bytes) -> list[tuple[bytes, int]]:
                pieces = cut(self, data)
                assert max(frames for _, frames in pieces) <= session.MAX_FRAMES
                heartbeat.counted(lambda: None, lambda: sum(frames for _, frames in pieces))()
                return pieces

            monkeypatch.setattr(FrameCutter, "cut", counted)
            client.writer.write(FLOODS[name] * 20_000)
            await client.closed()
            assert heartbeat.total < 20_000  # it was ended before the rest was read


def test_frames_are_cut_at_their_ends_however_they_arrive() -> None:
    whole = b"PRI!" + b"".join(frame(0, b"x" * size, stream=1) for size in (0, 1, 9, 300, 0, 0, 5))
    for step in (1, 2, 7, 50, len(whole)):
        cutter = FrameCutter(4, 2)
        cut = [piece for at in range(0, len(whole), step) for piece in cutter.cut(whole[at : at + step])]
        assert b"".join(data for data, _ in cut) == whole
        assert sum(frames for _, frames in cut) == 7
        assert max(frames for _, frames in cut) <= 2


async def test_one_byte_chunks_reach_recorder_and_client_in_large_pieces() -> None:
    class Counting(Memory):
        calls = 0

        def body(self, flow: Flow, from_client: bool, chunk: bytes) -> None:
            self.calls += 1
            super().body(flow, from_client, chunk)

    memory = Counting(spools=True)
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n"
    async with raw_origin(answer) as port, proxy(recorder=memory) as engine:
        got = await fetched(engine, port)
        flow = await memory.flow()
    assert got.endswith(b"1\r\nx\r\n0\r\n\r\n") and flow.response_body.size_bytes == CHUNKS
    assert memory.down == b"x" * CHUNKS
    assert memory.calls < CHUNKS / 50


async def test_chunks_are_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n"
    async with raw_origin(answer) as port, proxy() as engine, Heartbeat() as heartbeat:
        received = UpstreamConnection._received
        counted = heartbeat.counted(received, lambda self, data: len(data))
        monkeypatch.setattr(UpstreamConnection, "_received", counted)
        await fetched(engine, port)
    assert heartbeat.total >= len(answer)
    assert heartbeat.most <= 8 * 32 * 1024  # pieces of 32 KiB, as many as fit into a slice
    assert heartbeat.beats > 3


async def test_interim_responses_have_an_end() -> None:
    async with raw_origin(b"HTTP/1.1 102 Processing\r\n\r\n" * (MAX_INTERIM + 10)) as port, proxy() as engine:
        assert b"interim responses" in await fetched(engine, port)


async def test_pipelined_requests_are_answered_with_turns_in_between() -> None:
    async with proxy() as engine, Heartbeat() as heartbeat:
        assert engine.address is not None
        reader, writer = await asyncio.open_connection(*engine.address)
        asked = b"GET http://proxy.crab/ HTTP/1.1\r\nHost: proxy.crab\r\n\r\n"
        writer.write(asked * 2_000 + asked.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answers = await reader.read(-1)
        writer.close()
    assert answers.count(b"HTTP/1.1 503") == 2_001  # no CA here
    assert heartbeat.beats > 5


def test_messages_that_inflate_a_thousandfold_are_not_followed_for_long() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = (packer.compress(bytes(3 * 1024 * 1024)) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    message = b"\xc2\x7e" + struct.pack(">H", len(packed)) + packed
    flow = Flow(1, "", 0, "GET", "http", "a", "/", "1.1", [])
    deflate = b"permessage-deflate; server_no_context_takeover"
    tap = WebSocketTap(flow, [(b"Sec-WebSocket-Extensions", deflate)], None)
    tap.feed(False, message * 100)
    assert flow.frames is not None and len(flow.frames) == 100
    assert sum(each.size_bytes for each in flow.frames) < 40 * 1024 * 1024


# A raw origin and a raw client.


def raw_origin(answer: bytes) -> Any:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def running() -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            try:
                await writer.drain()
            except ConnectionError:
                pass
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    return running()


async def fetched(engine: Any, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(*engine.address)
    asked = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
    writer.write(asked % (port, port))
    got = await reader.read(-1)
    writer.close()
    return got
