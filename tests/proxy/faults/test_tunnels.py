"""Tunnels and WebSockets whose ends go away in the middle."""

from __future__ import annotations

import asyncio

import pytest

from tests.proxy.faults.stage import SCHEMES, ended, rst, stage
from tests.support.origins.origin import Line
from tests.support.proxy_engine import tunnel

# Not a TLS record and not a method: passed on unread.
RAW = b"\x00raw bytes"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


@pytest.mark.parametrize("how", ["resets", "closes"])
async def test_a_client_that_leaves_its_tunnel_ends_it(how: str) -> None:
    gone = asyncio.Event()

    async def handle(line: Line) -> None:
        try:
            while data := await line.reader.read(1000):
                await line.say(data)
        finally:
            gone.set()

    async with stage("http", handle) as here:
        async with tunnel(here.engine, here.there.authority) as line:
            await line.send(RAW)
            assert await line.reader.readexactly(len(RAW)) == RAW
            if how == "resets":
                line.reset()
            else:
                line.close()
        await gone.wait()
        flow = await here.memory.flow()
        assert (flow.event, flow.is_encrypted) == ("tunnel", True)
        assert (flow.request_body.size_bytes, flow.response_body.size_bytes) == (len(RAW), len(RAW))
        assert (flow.error is None) == (how == "closes")


@pytest.mark.parametrize("resets", [False, True])
async def test_an_origin_that_leaves_a_tunnel_ends_it(resets: bool) -> None:
    async def handle(line: Line) -> None:
        await line.reader.readexactly(len(RAW))
        await line.say(b"bye")
        if resets:
            await asyncio.wait_for(line.reader.read(1), 30)
            rst(line.writer)

    async with stage("http", handle) as here:
        async with tunnel(here.engine, here.there.authority) as line:
            await line.send(RAW)
            assert await line.reader.readexactly(3) == b"bye"
            if resets:
                await line.send(b"x")
                with pytest.raises(ConnectionError):
                    await line.rest()
            else:
                assert await line.rest() == b""
        flow = await here.memory.flow()
        assert (flow.error is not None) == resets


async def test_a_client_that_closed_its_tunnel_is_no_error() -> None:
    """curl ends TLS and closes; the origin's close_notify then reaches nobody, which is how HTTPS ends every day."""

    async def handle(line: Line) -> None:
        await line.reader.read()
        while not line.writer.is_closing():
            await line.say(b"close_notify, so to speak")
            await asyncio.sleep(0.01)

    async with stage("http", handle) as here:
        async with tunnel(here.engine, here.there.authority) as line:
            await line.send(RAW)
            line.close()
            await line.writer.wait_closed()
        flow = await here.memory.flow()
        assert flow.error is None


async def test_a_tunnel_has_the_status_that_the_client_saw() -> None:
    async def handle(line: Line) -> None:
        await line.reader.readexactly(len(RAW))
        await line.say(b"bye")

    async with stage("http", handle) as here:
        async with tunnel(here.engine, here.there.authority) as line:
            await line.send(RAW)
            assert await line.rest() == b"bye"
        flow = await here.memory.flow()
        assert flow.status == 200


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("who", ["client", "origin"])
async def test_a_websocket_that_breaks_ends_for_both(scheme: str, who: str) -> None:
    gone, ready = asyncio.Event(), asyncio.Event()

    async def handle(line: Line) -> None:
        await line.head()
        await line.say(SWITCHED + b"\x81\x05hello")
        if who == "origin":
            await ready.wait()
            rst(line.writer)
            return
        try:
            await line.reader.read()
        finally:
            gone.set()

    async with stage(scheme, handle) as here:
        async with here.line() as line:
            await line.send(here.request(*UPGRADE))
            assert (await line.head()).status == 101
            assert await line.reader.readexactly(7) == b"\x81\x05hello"
            if who == "client":
                line.reset()
                await gone.wait()
            else:
                ready.set()
                await ended(line)
        flow = await here.memory.flow()
        assert flow.status == 101 and flow.error is not None
        assert [frame.payload for frame in flow.frames or ()] == [b"hello"]
