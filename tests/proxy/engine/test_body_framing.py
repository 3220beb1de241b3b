"""Bodies: streamed, bounded, sampled; delivered as they arrive and never kept for a reader that does not read."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dari.proxy.flow import SAMPLE_BYTES
from tests.support.origins.origin import OK, Line, answering, origin
from tests.support.proxy_engine import Memory, Wire, proxy, request, wire

MB = 1 << 20
LARGE_MB = 200
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def rss_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / MB


async def logical_time(line: Wire, url: str) -> None:
    """Time in requests instead of seconds: plenty for whatever else the loop has to do."""
    for _ in range(100):
        assert (await line.get(url)).status == 200


async def test_200_mb_to_a_client_that_does_not_read_costs_no_memory() -> None:
    sent = 0
    piece = bytes(MB)

    async def handle(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LARGE_MB * MB))
        for _ in range(LARGE_MB):
            await line.say(piece)
            sent += 1

    async with origin(handle) as there, origin() as other, proxy() as engine:
        async with wire(engine) as stalled, wire(engine) as line:
            await logical_time(line, other.url())
            before = rss_mb()
            stalled.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await stalled.send(request(there.url()))
            await logical_time(line, other.url())
            assert 0 < sent < 40  # what the kernel's buffers take
            assert rss_mb() - before < 20
            stalled.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await stalled.head()
            left = LARGE_MB * MB
            while left:
                left -= len(await stalled.reader.read(4 * MB))
            assert rss_mb() - before < 20


async def test_200_mb_to_an_origin_that_does_not_read_costs_no_memory() -> None:
    go_on = asyncio.Event()

    async def handle(line: Line) -> None:
        seen = await line.head()
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await go_on.wait()
        line.writer.transport.resume_reading()  # type: ignore[attr-defined]
        left = LARGE_MB * MB
        while left:
            left -= len(await line.reader.read(4 * MB))
        assert seen is not None
        await line.say(OK)

    sent = 0

    async def upload(line: Wire, url: str) -> None:
        nonlocal sent
        await line.send(request(url, f"Content-Length: {LARGE_MB * MB}", method="PUT"))
        for _ in range(LARGE_MB):
            await line.send(bytes(MB))
            sent += 1

    async with origin(handle) as there, origin() as other, proxy() as engine:
        async with wire(engine) as line, wire(engine) as clock:
            await logical_time(clock, other.url())
            before = rss_mb()
            sending = asyncio.create_task(upload(line, there.url()))
            await logical_time(clock, other.url())
            assert sent < 40
            assert rss_mb() - before < 20
            go_on.set()
            await sending
            assert (await line.reply()).status == 200


async def test_server_sent_events_arrive_one_by_one() -> None:
    next_event = asyncio.Queue[bytes]()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        while event := await next_event.get():
            await line.say(b"%x\r\n%b\r\n" % (len(event), event))
        await line.say(b"0\r\n\r\n")

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url()))
        assert (await line.head()).status == 200
        for event in (b"data: 1\n\n", b"data: 2\n\n"):
            next_event.put_nowait(event)
            # The origin sends the next one only after this one was read: nothing waits for the end of the stream.
            assert await line.reader.readuntil(event)
        next_event.put_nowait(b"")
        assert await line.reader.readuntil(b"0\r\n\r\n")


async def test_a_body_is_counted_whole_and_sampled_at_its_start() -> None:
    up, down = bytes(range(256)) * 400, bytes(range(255, -1, -1)) * 300
    memory = Memory(spools=True)
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(down), down)
    async with origin(answering(data)) as there, proxy(recorder=memory) as engine, wire(engine) as line:
        await line.send(request(there.url(), f"Content-Length: {len(up)}", method="PUT", body=up))
        assert (await line.reply()).body == down
        flow = await memory.flow()
        assert (flow.request_body.size_bytes, flow.response_body.size_bytes) == (len(up), len(down))
        assert flow.request_body.sample == up[:SAMPLE_BYTES]
        assert flow.response_body.sample == down[:SAMPLE_BYTES]
        assert (memory.up, memory.down) == (up, down)
        assert flow.request_body.outcome == flow.response_body.outcome == "complete"
        assert there.requests[0].body == up


async def test_the_payload_of_chunks_is_recorded_without_them() -> None:
    memory = Memory(spools=True)
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    async with origin(answering(data)) as there, proxy(recorder=memory) as engine, wire(engine) as line:
        body = b"4\r\nwxyz\r\n0\r\nX-T: 1\r\n\r\n"
        await line.send(request(there.url(), "Transfer-Encoding: chunked", method="POST", body=body))
        assert (await line.reply()).body == b"abcde"
        flow = await memory.flow()
        assert (memory.up, memory.down) == (b"wxyz", b""), "what came whole and is in the sample is not told twice"
        assert (flow.request_body.sample, flow.response_body.sample) == (b"wxyz", b"abcde")
        assert flow.request_body.trailers == [(b"X-T", b"1")]
        assert there.requests[0].body == body


@pytest.mark.parametrize("size", [1, 65535, 65536, 1_000_003])
async def test_a_body_arrives_as_it_was_sent(size: int) -> None:
    body = os.urandom(size)
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, body)
    async with origin(answering(data)) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url(), f"Content-Length: {size}", method="POST"))
        sending = asyncio.create_task(line.send(*(body[n : n + 7777] for n in range(0, size, 7777))))
        assert (await line.reply()).body == body
        await sending
        assert there.requests[0].body == body


async def test_answers_that_nobody_reads_stop_the_requests_behind_them() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + bytes(10_000)
    async with origin(answering(data)) as there, origin() as other, proxy() as engine:
        async with wire(engine) as line, wire(engine) as clock:
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            sending = asyncio.create_task(line.send(request(there.url()) * 10_000))
            for _ in range(5):
                await logical_time(clock, other.url())
            asked = len(there.requests)
            assert 0 < asked < 5000  # 100 MB were asked for; the kernel's buffers and ours take a few
            line.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(asked + 10):
                assert len((await line.reply()).body) == 10_000
            sending.cancel()
