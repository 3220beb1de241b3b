"""Clients that vanish or stall: their origin is let go, their flow says why, and others are served meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.proxy.faults.stage import SCHEMES, ended, stage
from tests.support.origins.origin import Broken, Line
from tests.support.proxy_engine import FAST, Wire, tunnel, wire
from tests.support.waiting import until

OVER = pytest.mark.parametrize("scheme", SCHEMES)
HOW = pytest.mark.parametrize("how", ["resets", "closes"])
GONE = "the client closed the connection"


def leave(line: Wire, how: str) -> None:
    if how == "resets":
        line.reset()
    else:
        line.close()


@OVER
@HOW
async def test_a_client_that_vanishes_during_its_download_ends_it(scheme: str, how: str) -> None:
    gone = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        try:
            while not line.writer.is_closing():
                await line.say(bytes(100_000))
                await asyncio.sleep(0)
        finally:
            gone.set()

    async with stage(scheme, handle) as here:
        async with here.line() as line:
            await line.send(here.request())
            await line.head()
            await line.reader.readexactly(300_000)
            leave(line, how)
        await gone.wait()
        flow = await here.memory.flow()
        assert (flow.status, flow.error, flow.response_body.outcome) == (200, GONE, "error")
        assert flow.response_body.size_bytes >= 300_000


@OVER
@HOW
@pytest.mark.parametrize("framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
async def test_a_client_that_vanishes_during_its_upload_leaves_half_a_request(
    scheme: str, how: str, framing: str
) -> None:
    arrived, broken = asyncio.Event(), asyncio.Event()

    async def handle(line: Line) -> None:
        seen = await line.head()
        assert seen is not None
        arrived.set()
        try:
            await line.body(seen)
        except (Broken, asyncio.IncompleteReadError, ConnectionError):
            broken.set()

    async with stage(scheme, handle) as here:
        async with here.line() as line:
            await line.send(here.request(framing, method="POST", body=b"3e8\r\n" + bytes(1000)))
            await arrived.wait()
            leave(line, how)
            await broken.wait()
        flow = await here.memory.flow()
        assert (flow.error or "").startswith(GONE) and flow.status is None
        assert (flow.request_body.outcome, here.there.requests) == ("error", [])


@OVER
async def test_a_client_that_vanishes_before_its_answer_lets_the_origin_go(scheme: str) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        asked.set()
        try:
            await line.reader.read()
        finally:
            gone.set()

    async with stage(scheme, handle) as here:
        async with here.line() as line:
            await line.send(here.request())
            await asked.wait()
            line.reset()
        await gone.wait()
        flow = await here.memory.flow()
        assert (flow.status, flow.error) == (None, GONE)


async def test_a_client_that_says_it_sends_no_more_still_gets_its_answer() -> None:
    asked, answers = asyncio.Event(), asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        asked.set()
        await answers.wait()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with stage("http", handle) as here, here.line() as line:
        await line.send(here.request())
        line.writer.write_eof()
        await asked.wait()
        answers.set()
        assert (await ended(line)).endswith(b"\r\n\r\nok")
        flow = await here.memory.flow()
        assert (flow.status, flow.error) == (200, None)


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
@HOW
async def test_a_client_that_vanishes_before_or_in_its_handshake_is_recorded(sent: bytes, how: str) -> None:
    async with stage("https") as here:
        async with tunnel(here.engine, here.authority) as line:
            await line.send(sent)
            leave(line, how)
        flow = await here.memory.flow()
        assert (flow.method, flow.event, flow.is_encrypted) == ("CONNECT", "tunnel", True) and flow.error
        assert here.there.connections == 0


async def test_a_handshake_that_never_ends_is_ended() -> None:
    async with stage("https", config=replace(FAST, connect_timeout_s=0.2)) as here:
        async with tunnel(here.engine, here.authority) as line:
            await line.send(b"\x16\x03\x01\x02\x00\x01")
            assert await ended(line) == b""
        assert (await here.memory.flow()).error


async def test_an_upload_that_stops_arriving_is_408() -> None:
    broken = asyncio.Event()

    async def handle(line: Line) -> None:
        try:
            await line.request()
        finally:
            broken.set()

    async with stage("http", handle, replace(FAST, request_timeout_s=0.2)) as here, here.line() as line:
        await line.send(here.request("Content-Length: 1000", method="PUT", body=bytes(10)))
        assert (await line.reply()).status == 408
        await broken.wait()
        flow = await here.memory.flow()
        assert (flow.status, flow.event) == (408, "bad_request") and here.there.requests == []


async def test_slow_heads_are_408_while_others_are_served() -> None:
    """Slow loris: two hundred heads that come a byte at a time get one time limit each, not one per byte."""
    count, config = 200, replace(FAST, request_timeout_s=0.5)

    async def drip(line: Wire) -> int:
        reply = asyncio.ensure_future(line.reply())
        letters = iter(b"GET http://localhost/" + b"a" * 1_000_000)
        while not reply.done():
            line.writer.write(bytes((next(letters),)))
            await asyncio.wait([reply], timeout=0.02)
        return reply.result().status

    async def served(line: Wire, slow: asyncio.Future[list[int]]) -> int:
        answers = 0
        while not slow.done():
            await line.send(here.request())
            assert (await line.reply()).status == 200
            answers += 1
        return answers

    async with stage("http", config=config) as here, here.line() as line:
        async with asyncio.TaskGroup() as group:

            async def one() -> int:
                async with wire(here.engine) as mine:
                    return await drip(mine)

            slow = asyncio.gather(*(group.create_task(one()) for _ in range(count)))
            answers = await served(line, slow)
        assert slow.result() == [408] * count
        assert answers > 0
        refused = [flow for flow in here.memory.done if flow.event == "bad_request"]
        assert len(refused) == count and {flow.status for flow in refused} == {408}
        assert {flow.error for flow in refused} == {"the request's head did not arrive in time"}
        # Ended for good: the linger of a refused client is over as soon as it closes.
        await until(lambda: here.engine.connection_count == 1)
