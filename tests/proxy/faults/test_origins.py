"""Origins that close, reset, stall and speak garbage: what the client sees, what is recorded, that nothing is left."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest

from tests.proxy.faults.stage import SCHEMES, ended, rst, sends, stage
from tests.support.origins.origin import OK, Line
from tests.support.proxy_engine import FAST
from tests.support.waiting import until

OVER = pytest.mark.parametrize("scheme", SCHEMES)
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\n"


@OVER
@pytest.mark.parametrize(
    ("head", "part"), [(LENGTH, b"half of it"), (CHUNKED, b"5\r\nhello\r\n"), (CHUNKED, b"a\r\nhalf")]
)
@pytest.mark.parametrize("resets", [False, True])
async def test_a_body_that_breaks_off_is_never_taken_for_a_whole_one(
    scheme: str, head: bytes, part: bytes, resets: bool
) -> None:
    arrived = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(head + part)
        await arrived.wait()
        if resets:
            rst(line.writer)

    async with stage(scheme, handle) as here, here.line() as line:
        await line.send(here.request())
        assert (await line.head()).status == 200
        got = await line.reader.readexactly(len(part))
        arrived.set()
        got += await ended(line)
        # One status line, the bytes that came, and no last chunk.
        assert got == part
        flow = await here.memory.flow()
        assert (flow.status, flow.event, flow.response_body.outcome) == (200, "upstream_error", "error")
        assert flow.error == "the origin closed the connection in the middle of its response"


@OVER
async def test_a_body_without_a_length_that_is_reset_is_reset_for_the_client_too(scheme: str) -> None:
    arrived = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(UNTIL_CLOSE + b"some")
        await arrived.wait()
        rst(line.writer)

    async with stage(scheme, handle) as here, here.line() as line:
        await line.send(here.request())
        await line.head()
        assert await line.reader.readexactly(4) == b"some"
        arrived.set()
        with pytest.raises(ConnectionError):
            await line.rest()
        assert (await here.memory.flow()).response_body.outcome == "error"


@OVER
@pytest.mark.parametrize("resets", [False, True])
async def test_an_origin_that_goes_away_without_a_word_is_502(scheme: str, resets: bool) -> None:
    async with stage(scheme, sends(resets=resets)) as here, here.line() as line:
        await line.send(here.request(method="POST", body=b""))
        reply = await line.reply()
        assert reply.status == 502 and b"without a response" in reply.body
        # The client's connection is still good.
        await line.send(here.request(path="/again"))
        assert (await line.reply()).status == 502
        flow = await here.memory.flow(2)
        assert (flow.status, flow.upstream_status, flow.event) == (502, None, "upstream_error")


@OVER
async def test_half_a_head_and_an_end_is_502(scheme: str) -> None:
    async with stage(scheme, sends(b"HTTP/1.1 200 OK\r\nContent-")) as here, here.line() as line:
        await line.send(here.request())
        assert (await line.reply()).status == 502
        assert "without a response" in ((await here.memory.flow()).error or "")


@OVER
@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nX: y\r\n"])
async def test_an_origin_that_stalls_is_504(scheme: str, said: bytes) -> None:
    gone = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(said)
        assert await line.reader.read() == b""
        gone.set()

    config = replace(FAST, response_timeout_s=0.2)
    async with stage(scheme, handle, config) as here, here.line() as line:
        await line.send(here.request())
        reply = await line.reply()
        assert reply.status == 504 and b"no response within 0.2 s" in reply.body
        await gone.wait()
        flow = await here.memory.flow()
        assert (flow.status, flow.event) == (504, "upstream_error")
        assert flow.error == "no response within 0.2 s"


async def test_an_origin_that_only_hints_is_504() -> None:
    async def handle(line: Line) -> None:
        await line.request()
        while not line.writer.is_closing():
            await line.say(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
            await asyncio.sleep(0.001)

    config = replace(FAST, response_timeout_s=0.3)
    async with stage("http", handle, config) as here, here.line() as line:
        await line.send(here.request())
        statuses = set()
        while (reply := await line.head()).status == 103:
            statuses.add(reply.status)
        assert statuses == {103} and reply.status == 504
        assert (await here.memory.flow()).status == 504


async def silent(line: Line) -> None:
    await line.reader.read()


@OVER
async def test_an_origin_that_stalls_in_its_body_is_waited_for_and_left_with_the_client(scheme: str) -> None:
    gone = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(LENGTH + b"some")
        try:
            await line.reader.read()
        finally:
            gone.set()

    # Long enough for the heads on a busy machine.
    config = replace(FAST, response_timeout_s=0.4, request_timeout_s=0.4)
    async with stage(scheme, handle, config) as here:
        async with here.line() as line:
            await line.send(here.request())
            await line.head()
            assert await line.reader.readexactly(4) == b"some"
            # Another origin's head runs into the timeout meanwhile, twice; inside a body there is none.
            async with stage("http", silent, config) as other, other.line() as clock:
                for _ in range(2):
                    await clock.send(other.request())
                    assert (await clock.reply()).status == 504
            assert here.memory.done == [] and not line.reader.at_eof()
            line.reset()
        await gone.wait()
        flow = await here.memory.flow()
        assert flow.error == "the client closed the connection"


GARBAGE = {
    "noise": b"\x00\xff\x13\x37" * 100 + b"\r\n\r\n",
    "http/0.9": b"<html>hello</html>\r\n\r\n",
    "no status": b"HTTP/1.1 abc OK\r\n\r\n",
    "a status of five digits": b"HTTP/1.1 20000 OK\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a NUL in a header": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000,
    "a switch nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello",
}


@OVER
@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_is_502_and_none_of_it_reaches_the_client(scheme: str, name: str) -> None:
    async with stage(scheme, sends(GARBAGE[name])) as here, here.line() as line:
        await line.send(here.request())
        reply = await line.reply()
        assert reply.status == 502 and b"HTTP/1.1 200" not in reply.head + reply.body
        flow = await here.memory.flow()
        assert (flow.status, flow.event) == (502, "upstream_error") and flow.error


@OVER
@pytest.mark.parametrize("chunk", [b"5\r\nhelloXX\r\n0\r\n\r\n", b"xyz\r\nhello\r\n", b"ffffffffffffffffff\r\nhello"])
async def test_chunks_that_are_none_end_the_response(scheme: str, chunk: bytes) -> None:
    seen = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"3\r\nabc\r\n")
        await seen.wait()
        await line.say(chunk)
        await line.reader.read()

    async with stage(scheme, handle) as here, here.line() as line:
        await line.send(here.request())
        await line.head()
        got = await line.reader.readexactly(8)
        seen.set()
        got += await ended(line)
        assert got.startswith(b"3\r\nabc\r\n") and b"0\r\n\r\n" not in got and b"HTTP/1.1" not in got
        flow = await here.memory.flow()
        assert "malformed" in (flow.error or "") and flow.response_body.outcome == "error"


@OVER
async def test_more_than_was_asked_for_costs_the_connection_and_nothing_else(scheme: str) -> None:
    async with stage(scheme, sends(OK + OK)) as here, here.line() as line:
        for count in (1, 2, 3):
            await line.send(here.request(path=f"/{count}"))
            assert (await line.reply()).body == b"ok"
            assert here.there.connections == count
        assert [flow.error for flow in here.memory.done] == [None] * 3


def full_listener() -> tuple[socket.socket, list[socket.socket]]:
    """A port whose queue is full: Linux drops what comes next, so connecting takes for ever."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = []
    for _ in range(4):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(listener.getsockname())
        waiting.append(one)
    return listener, waiting


async def test_an_origin_that_cannot_be_reached_in_time_is_504() -> None:
    listener, waiting = full_listener()
    try:
        async with stage("http", config=replace(FAST, connect_timeout_s=0.3)) as here, here.line() as line:
            port = listener.getsockname()[1]
            await line.send(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            reply = await line.reply()
            assert reply.status == 504 and b"no connection to" in reply.body
            assert (await here.memory.flow()).event == "upstream_error"
    finally:
        for one in (listener, *waiting):
            one.close()


async def test_a_client_that_leaves_while_its_origin_is_dialled_leaves_nothing() -> None:
    listener, waiting = full_listener()
    try:
        async with stage("http") as here:
            async with here.line() as line:
                port = listener.getsockname()[1]
                await line.send(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                await until(lambda: bool(here.memory.flows))
                line.reset()
            flow = await here.memory.flow()
            assert flow.error == "the client closed the connection" and flow.status is None
    finally:
        for one in (listener, *waiting):
            one.close()


@pytest.mark.parametrize(("url", "why"), [("localhost:1", "Connection refused"), ("nowhere.invalid", "is not known")])
async def test_an_origin_that_is_not_there_is_502_with_the_reason(url: str, why: str) -> None:
    async with stage("http") as here, here.line() as line:
        await line.send(f"GET http://{url}/ HTTP/1.1\r\nHost: {url}\r\n\r\n".encode())
        reply = await line.reply()
        assert reply.status == 502 and why in reply.body.decode()
        assert why in ((await here.memory.flow()).error or "")
