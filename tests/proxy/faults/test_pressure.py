"""A thousand connections held, and peers that do not read: bounded memory, and nothing kept afterwards."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import hashlib
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.proxy.faults.process import MIB, EngineProcess, engine_process, many_files
from tests.proxy.faults.stage import SCHEMES
from tests.support.leftovers import nothing_left
from tests.support.origins.origin import Line, Origin, answering, origin
from tests.support.proxy_engine import Wire, request
from tests.support.proxy_lab import THEIRS
from tests.support.proxy_site import pattern, pattern_sha256

LOOPS = ["uvloop"]
pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.skipif(sys.platform != "linux", reason="memory and descriptors are read from /proc"),
]
SIZE_MIB = 200
GROWTH_KIB = 20 * 1024


@asynccontextmanager
async def speaking(engine: EngineProcess, scheme: str, there: Origin) -> AsyncIterator[tuple[Wire, str]]:
    """A connection to the origin, and what a request's target is on it."""
    authority = f"localhost:{there.port}"
    if scheme == "http":
        async with engine.line() as line:
            yield line, f"http://{authority}/"
    else:
        async with engine.decrypted(authority) as line:
            yield line, "/"


async def quiet(engine: EngineProcess, count: list[int]) -> None:
    """Until a peer's progress stands still while a hundred other requests go through."""
    async with origin() as other, engine.line() as clock:
        before = -1
        while count[0] != before:
            before = count[0]
            for _ in range(100):
                assert (await clock.get(other.url())).status == 200


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_200_mb_to_a_client_that_does_not_read_cost_no_memory(scheme: str, tmp_path: Path) -> None:
    sent = [0]

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (SIZE_MIB * MIB))
        for index in range(SIZE_MIB):
            await line.say(pattern(index))
            sent[0] += 1
            await asyncio.sleep(0)
        await line.reader.read()

    tls = THEIRS.context_for("localhost") if scheme == "https" else None
    async with nothing_left(), origin(handle, tls) as there, engine_process(tmp_path) as engine:
        first = await engine.stats()
        async with speaking(engine, scheme, there) as (line, target):
            await quiet(engine, [0])
            before = await engine.forget_peak()
            await line.send(request(target, "Connection: close").replace(b"Host: /", b"Host: localhost"))
            await line.head()
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await quiet(engine, sent)
            assert sent[0] < SIZE_MIB / 2, "the origin was not held back"
            assert (await engine.stats()).peak_kib - before.peak_kib < GROWTH_KIB
            line.writer.transport.resume_reading()  # type: ignore[attr-defined]
            total, left = hashlib.sha256(), SIZE_MIB * MIB
            while left:
                part = await line.reader.read(MIB)
                assert part, f"{left} bytes short"
                total.update(part)
                left -= len(part)
            assert total.hexdigest() == pattern_sha256(SIZE_MIB)
        after = await engine.until(lambda stats: stats.connections == 0)
        assert after.peak_kib - before.peak_kib < GROWTH_KIB
        flow = (await engine.flows())[-1]
        assert (flow["status"], flow["error"], flow["down_bytes"]) == (200, None, SIZE_MIB * MIB)
        assert after.tasks == first.tasks and after.fds <= first.fds + after.pooled


async def test_a_stream_of_http2_that_is_not_read_costs_no_memory(tmp_path: Path) -> None:
    sent, size_mib = [0], 50

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (size_mib * MIB))
        for index in range(size_mib):
            await line.say(pattern(index))
            sent[0] += 1
            await asyncio.sleep(0)
        await line.reader.read()

    async with nothing_left(), origin(handle, THEIRS.context_for("localhost")) as there:
        async with engine_process(tmp_path) as engine:
            options = {"proxy": engine.url, "http2": True, "trust_env": False, "timeout": 60}
            async with httpx.AsyncClient(verify=engine.h2_trusts, **options) as client:  # type: ignore[arg-type]
                await quiet(engine, [0])
                before = await engine.forget_peak()
                async with client.stream("GET", f"https://localhost:{there.port}/") as response:
                    assert response.http_version == "HTTP/2"
                    await quiet(engine, sent)
                    assert sent[0] < size_mib / 2, "the origin was not held back"
                    total = hashlib.sha256()
                    async for part in response.aiter_raw():
                        total.update(part)
                assert total.hexdigest() == pattern_sha256(size_mib)
            after = await engine.until(lambda stats: stats.connections == 0)
            assert after.peak_kib - before.peak_kib < GROWTH_KIB
            flow = (await engine.flows())[-1]
            assert (flow["status"], flow["error"], flow["down_bytes"]) == (200, None, size_mib * MIB)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_200_mb_for_an_origin_that_does_not_read_cost_no_memory(scheme: str, tmp_path: Path) -> None:
    may_read, sent = asyncio.Event(), [0]
    digests: list[str] = []

    async def handle(line: Line) -> None:
        sock = line.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        await line.head()
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await may_read.wait()
        line.writer.transport.resume_reading()  # type: ignore[attr-defined]
        total, left = hashlib.sha256(), SIZE_MIB * MIB
        while left and (part := await line.reader.read(MIB)):
            total.update(part)
            left -= len(part)
        digests.append(total.hexdigest())
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def upload(line: Wire) -> None:
        for index in range(SIZE_MIB):
            await line.send(pattern(index))
            sent[0] += 1

    tls = THEIRS.context_for("localhost") if scheme == "https" else None
    async with nothing_left(), origin(handle, tls) as there, engine_process(tmp_path) as engine:
        async with speaking(engine, scheme, there) as (line, target):
            await quiet(engine, [0])
            before = await engine.forget_peak()
            head = request(target, f"Content-Length: {SIZE_MIB * MIB}", method="PUT")
            await line.send(head.replace(b"Host: /", b"Host: localhost"))
            sending = asyncio.create_task(upload(line))
            await quiet(engine, sent)
            assert sent[0] < SIZE_MIB / 2, "the client was not held back"
            may_read.set()
            await sending
            assert (await line.reply()).body == b"ok"
        assert digests == [pattern_sha256(SIZE_MIB)]
        after = await engine.until(lambda stats: stats.connections == 0)
        assert after.peak_kib - before.peak_kib < GROWTH_KIB
        flow = (await engine.flows())[-1]
        assert (flow["status"], flow["up_bytes"]) == (200, SIZE_MIB * MIB)


HELD = {"http": 700, "https": 200, "tunnel": 100}


async def test_a_thousand_connections_are_held_at_once(tmp_path: Path) -> None:
    waiting, all_in, release = 0, asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        nonlocal waiting
        waiting += 1
        if waiting == sum(HELD.values()):
            all_in.set()
        await release.wait()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
        await hold()
        await line.say(b"56789")
        await line.reader.read()

    async def echo(line: Line) -> None:
        data = await line.reader.read(10)
        await hold()
        await line.say(data)
        await line.reader.read()

    tls = THEIRS.context_for("localhost")
    with many_files(4096):
        async with nothing_left(), origin(handle) as plain, origin(handle, tls) as secure, origin(echo) as raw:
            async with engine_process(tmp_path, capacity=2000) as engine:
                first = await engine.stats()
                lines = [await _asked(engine, plain, secure, raw, kind) for kind, n in HELD.items() for _ in range(n)]
                await all_in.wait()
                held = await engine.stats()
                assert held.connections == 1000 and held.fds >= first.fds + 2000
                # One more is served as if nobody else were there.
                async with origin() as other, engine.line() as line:
                    assert (await line.get(other.url())).body == b"ok"
                release.set()
                assert await asyncio.gather(*(_answer(line) for line, _ in lines)) == [b"0123456789"] * 1000
                for _, stack in lines:
                    await stack.aclose()
                after = await engine.until(lambda stats: stats.connections == 0)
                assert (after.began, after.finished) == (1001, 1001)
                assert after.outcomes["upstream 200"] == 901 and sum(after.outcomes.values()) == 1001
                after = await engine.until(lambda stats: stats.fds <= first.fds + stats.pooled)
                assert after.tasks == first.tasks


async def _asked(
    engine: EngineProcess, plain: Origin, secure: Origin, raw: Origin, kind: str
) -> tuple[tuple[Wire, str], AsyncExitStack]:
    """A connection whose request is at the origin, and what closes it."""
    stack = AsyncExitStack()
    if kind == "http":
        line = await stack.enter_async_context(engine.line())
        await line.send(request(plain.url()))
    elif kind == "https":
        line = await stack.enter_async_context(engine.decrypted(f"localhost:{secure.port}"))
        await line.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    else:
        line = await stack.enter_async_context(engine.tunnel(raw.authority))
        await line.send(b"0123456789")
    return (line, kind), stack


async def _answer(asked: tuple[Wire, str]) -> bytes:
    line, kind = asked
    return await line.reader.readexactly(10) if kind == "tunnel" else (await line.reply()).body


async def test_what_closes_at_once_is_all_closed(tmp_path: Path) -> None:
    """Five hundred clients, each with a request of its own under way, vanish in one moment."""
    release = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
        await release.wait()

    with many_files(4096):
        async with nothing_left(), origin(handle) as there, engine_process(tmp_path) as engine:
            first = await engine.stats()
            async with AsyncExitStack() as stack:
                lines = [await stack.enter_async_context(engine.line()) for _ in range(500)]
                for line in lines:
                    await line.send(request(there.url()))
                await asyncio.gather(*(line.head() for line in lines))
                for line in lines:
                    line.reset()
            after = await engine.until(lambda stats: stats.connections == 0 and stats.fds == first.fds)
            assert (after.began, after.finished, after.tasks) == (500, 500, first.tasks)
            assert {flow["error"] for flow in await engine.flows()} == {"the client closed the connection"}
            release.set()


async def test_connections_beyond_the_limit_are_dropped_and_those_below_it_served(tmp_path: Path) -> None:
    async with nothing_left(), origin(answering(b"HTTP/1.1 204 No\r\n\r\n")) as there:
        async with engine_process(tmp_path, max_connections=50) as engine, AsyncExitStack() as stack:
            lines = [await stack.enter_async_context(engine.line()) for _ in range(60)]

            async def is_served(line: Wire) -> bool:
                try:
                    return (await line.get(there.url())).status == 204
                except (ConnectionError, asyncio.IncompleteReadError):
                    return False

            served = await asyncio.gather(*map(is_served, lines))
            assert sum(served) == 50
            assert (await engine.stats()).connections == 50
