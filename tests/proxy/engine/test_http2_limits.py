"""What a client of HTTP/2 may not do: a bad request ends its stream, a flood its connection; neither goes further."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import DataFrame, PingFrame, SettingsFrame

from dari.proxy.engine.flow_control import PEER_FULL
from dari.proxy.engine.http2.client import ClientSession, ClientStream
from dari.proxy.engine.http2.wire import MAX_STREAMS, WINDOW_BYTES
from tests.support.origins.h2_peer import Fields
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import FAST, Memory
from tests.support.proxy_engine_h2 import OLD_TLS, decrypting, h2_client

GOOD: Fields = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/")]


def without(name: bytes) -> Fields:
    return [field for field in GOOD if field[0] != name]


def changed(name: bytes, value: bytes) -> Fields:
    return [(key, value if key == name else old) for key, old in GOOD]


BAD: dict[str, Fields] = {
    "no method": without(b":method"),
    "no path": without(b":path"),
    "no scheme": without(b":scheme"),
    "no authority": without(b":authority"),
    "empty path": changed(b":path", b""),
    "path without a slash": changed(b":path", b"a"),
    "absolute path": changed(b":path", b"http://other/"),
    "path with a space": changed(b":path", b"/a b"),
    "path with a fragment": changed(b":path", b"/a#b"),
    "star for GET": changed(b":path", b"*"),
    "request line in the path": changed(b":path", b"/ HTTP/1.1\r\nHost: evil\r\n\r\n"),
    "lower-case method": changed(b":method", b"get"),
    "method with a space": changed(b":method", b"GET /x"),
    "CONNECT": changed(b":method", b"CONNECT"),
    "other scheme": changed(b":scheme", b"ftp"),
    "scheme of another connection": changed(b":scheme", b"http"),
    "user in the authority": changed(b":authority", b"me@localhost"),
    "two authorities": [*GOOD[:3], *GOOD[2:]],
    "two paths": [*GOOD, GOOD[3]],
    "unknown pseudo-header": [*GOOD, (b":status", b"200")],
    "protocol of an extended CONNECT": [*GOOD, (b":protocol", b"websocket")],
    "late pseudo-header": [*GOOD[:3], (b"x-a", b"1"), GOOD[3]],
    "host that differs": [*GOOD, (b"host", b"evil")],
    "two hosts": [*GOOD, (b"host", b"localhost"), (b"host", b"localhost")],
    "capital in a name": [*GOOD, (b"X-A", b"1")],
    "empty name": [*GOOD, (b"", b"1")],
    "space in a name": [*GOOD, (b"x a", b"1")],
    "colon in a name": [*GOOD, (b"x:a", b"1")],
    "line break in a name": [*GOOD, (b"x\r\na", b"1")],
    "line break in a value": [*GOOD, (b"x-a", b"1\r\nx-b: 2")],
    "line feed in a value": [*GOOD, (b"x-a", b"1\n2")],
    "NUL in a value": [*GOOD, (b"x-a", b"1\0")],
    "space before a value": [*GOOD, (b"x-a", b" 1")],
    "space after a value": [*GOOD, (b"x-a", b"1\t")],
    "connection": [*GOOD, (b"connection", b"close")],
    "keep-alive": [*GOOD, (b"keep-alive", b"1")],
    "proxy-connection": [*GOOD, (b"proxy-connection", b"close")],
    "transfer-encoding": [*GOOD, (b"transfer-encoding", b"chunked")],
    "upgrade": [*GOOD, (b"upgrade", b"websocket")],
    "te other than trailers": [*GOOD, (b"te", b"gzip")],
    "two lengths": [*GOOD, (b"content-length", b"0"), (b"content-length", b"0")],
    "length that is no number": [*GOOD, (b"content-length", b"+5")],
    "too many headers": [*GOOD, *((b"x-%d" % number, b"1") for number in range(101))],
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_request_ends_its_stream_and_reaches_no_origin(tmp_path: Path, name: str) -> None:
    memory = Memory()
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            bad = await client.answer(client.ask_raw(BAD[name]))
            assert bad.reset is ErrorCodes.PROTOCOL_ERROR and not bad.headers
            assert there.received == b""
            flow = await memory.flow()
            assert (flow.event, flow.http_version) == ("bad_request", "2") and flow.error
            assert (await client.answer(client.ask_raw(GOOD))).body == b"ok"


@pytest.mark.parametrize(("length", "sent"), [(5, b"123456"), (5, b"1234"), (0, b"1")])
async def test_a_body_that_is_not_as_long_as_it_says_ends_its_stream(tmp_path: Path, length: int, sent: bytes) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            fields = [*changed(b":method", b"POST"), (b"content-length", b"%d" % length)]
            side = client.ask_raw(fields, ends=False)
            await client.say(side.number, sent, ends=True)
            await client.until(lambda: side.reset is not None)
            assert side.reset is ErrorCodes.PROTOCOL_ERROR
            assert (await client.answer(client.ask_raw(GOOD))).body == b"ok"
    assert all(seen.body != sent for seen in there.requests)


async def test_bad_trailers_end_their_stream(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            for bad in ((b"content-length", b"1"), (b":path", b"/"), (b"x-a", b"1\r\n\r\nGET / HTTP/1.1")):
                side = client.ask_raw(changed(b":method", b"POST"), ends=False)
                await client.say(side.number, b"abc")
                client.trail(side.number, bad)
                await client.until(lambda side=side: side.reset is not None)
                assert side.reset is ErrorCodes.PROTOCOL_ERROR
            assert (await client.answer(client.ask_raw(GOOD))).body == b"ok"
    assert b"x-a" not in there.received


async def test_streams_above_the_limit_are_refused_and_the_others_served(tmp_path: Path) -> None:
    may_answer = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await may_answer.wait()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            # All at once, before our settings can be known.
            asked = [client.ask_raw(GOOD) for _ in range(MAX_STREAMS + 20)]
            for side in asked[MAX_STREAMS:]:
                assert (await client.answer(side)).reset is ErrorCodes.REFUSED_STREAM
            may_answer.set()
            for side in asked[:MAX_STREAMS]:
                assert (await client.answer(side)).body == b"ok"


async def test_a_client_that_takes_back_its_requests_is_sent_away(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            for _ in range(2000):
                if client.is_closed:
                    break
                number = client.wire.get_next_available_stream_id()
                client.wire.send_headers(number, GOOD, end_stream=True)
                client.wire.reset_stream(number)
                client.flush()
            await client.closed()
            assert client.goaway is ErrorCodes.ENHANCE_YOUR_CALM
        assert engine.connection_count == 0
    assert there.connections < 10  # taken back in the same packet: never sent


FLOODS = {
    "pings": PingFrame(0, opaque_data=b"12345678").serialize(),
    "settings": SettingsFrame(0, settings={4: 65535}).serialize(),
    "empty data": DataFrame(1, data=b"").serialize(),
    "priorities": b"\0\0\5\2\0\0\0\0\1" + b"\0\0\0\0\1",
    "unknown frames": b"\0\0\1\x77\0\0\0\0\0x",
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_of_frames_that_carry_nothing_ends_the_connection(tmp_path: Path, name: str) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            client.ask_raw(changed(b":method", b"POST"), ends=False)
            for _ in range(200):
                client.writer.write(FLOODS[name] * 200)
                await asyncio.sleep(0)
                if client.is_closed:
                    break
            await client.closed()
        assert engine.connection_count == 0


async def test_a_head_without_an_end_is_not_collected(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            client.writer.write(b"\0\x10\0\1\0\0\0\0\1" + bytes(0x1000))
            for _ in range(100):
                client.writer.write(b"\0\x10\0\x09\0\0\0\0\1" + bytes(0x1000))
            await client.closed()
        assert there.received == b""


async def test_a_head_that_is_too_large_ends_the_connection(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            client.ask_raw([*GOOD, *((b"x-%d" % number, bytes([97]) * 8000) for number in range(20))])
            await client.closed()
            assert client.goaway in (ErrorCodes.ENHANCE_YOUR_CALM, ErrorCodes.PROTOCOL_ERROR)
        assert there.received == b""


async def test_more_than_the_window_ends_the_stream_or_the_connection(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        await line.head()
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.Event().wait()

    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask_raw(changed(b":method", b"POST"), ends=False)
            frame = DataFrame(side.number, data=bytes(16_384)).serialize()
            for _ in range(40 * WINDOW_BYTES // 16_384):
                client.writer.write(frame)
                await asyncio.sleep(0)
            await client.until_over(side)


@pytest.mark.parametrize("seed", range(10))
async def test_noise_ends_the_connection_and_nothing_else(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        for _ in range(5):
            async with h2_client(engine, there.port) as client:
                good = client.ask_raw(changed(b":method", b"POST"), ends=False)
                await client.say(good.number, b"abc")
                for _ in range(200):
                    size = dice.choice((0, 1, 4, 5, 8, 9, 30))
                    kind, flags, number = (
                        dice.randrange(12),
                        dice.choice((0, 1, 4, 5, 8, 255)),
                        dice.choice((0, 1, 3, 9)),
                    )
                    frame = size.to_bytes(3, "big") + bytes((kind, flags)) + number.to_bytes(4, "big")
                    client.writer.write(frame + dice.randbytes(size))
                client.writer.write(dice.randbytes(5000))
                client.writer.write_eof() if client.writer.can_write_eof() else client.writer.close()
                await client.closed()
        async with h2_client(engine, there.port) as client:
            assert (await client.answer(client.ask_raw(GOOD))).body == b"ok"


async def test_an_answer_to_an_upload_that_the_origin_does_not_read_leaves_no_stream_behind(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        await asyncio.Event().wait()

    memory, impatient = Memory(), replace(FAST, request_timeout_s=0.5)
    async with origin(handle, tls=OLD_TLS) as there, decrypting(tmp_path, memory, impatient) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask_raw(changed(b":method", b"POST"), ends=False)
            await memory.until_begun(1)
            assert engine._core is not None
            (session,) = (one for one in engine._core.connections if isinstance(one, ClientSession))
            request = session.streams[side.number].owner
            assert isinstance(request, ClientStream)
            request.hold(PEER_FULL)  # as an origin does whose buffers are full
            await client.say(side.number, b"never read", ends=True)
            assert (await client.answer(side)).status == 408
            assert not session.streams
