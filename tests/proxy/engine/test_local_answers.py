"""A request that is answered here goes no further, whatever of it comes later and whoever waited for it."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dari.proxy.engine.hooks import Decision, Direction, LocalResponse, Resume
from dari.proxy.flow import Flow
from tests.support.origins.origin import Line, origin
from tests.support.proxy_engine import Fixed, Memory, jumped, proxy, request, wire


class Slow:
    """A throttle that gives time to send something meanwhile."""

    def __init__(self, latency_s: float = 0.0, wait_s: float = 0.0) -> None:
        self._latency_s = latency_s
        self._wait_s = wait_s

    def applies(self, flow: Flow) -> bool:
        return True

    def delay_s(self, flow: Flow) -> float:
        return self._latency_s

    def take(self, direction: Direction, n_bytes: int) -> float:
        return self._wait_s if direction == "downstream" else 0.0

    def piece_bytes(self, direction: Direction) -> int:
        return 10 if self._wait_s else 65536


async def test_a_body_that_comes_after_a_mapped_file_began_reaches_no_origin(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * 30_000_000)
    memory = Memory()
    rules = Fixed(Decision(local=LocalResponse(file=str(file)), request_body=lambda body: body.upper()))
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        for _ in range(2):
            await line.send(request(there.url(), "Content-Length: 4", method="POST"))
            await line.reader.readuntil(b"\r\n\r\n")
            await line.send(b"body")
            assert await line.reader.readexactly(30_000_000) == file.read_bytes()
        assert (await memory.flow(2)).status == 200 and there.connections == 0


async def test_a_body_that_comes_during_the_latency_of_a_mock_reaches_no_origin() -> None:
    memory = Memory(spools=True)
    rules = Fixed(Decision(local=LocalResponse(200, (), b"mock"), request_body=lambda body: body.upper()))
    slow = Slow(latency_s=0.1)
    async with origin() as there, proxy(recorder=memory, rules=rules, throttle=slow) as engine, wire(engine) as line:
        for turn in (1, 2):
            await line.send(request(there.url(), "Content-Length: 4", method="POST"))
            await memory.until_begun(turn)
            await line.send(b"body")
            assert (await line.reply()).body == b"mock"
        assert (await memory.flow(2)).status == 200 and there.connections == 0
        assert memory.up == b"bodybody"


@pytest.mark.parametrize("framing", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
async def test_a_large_body_in_one_write_is_edited_only_after_the_rules_were_applied(framing: str) -> None:
    """It is read in slices, and those behind the first arrive during the delay."""
    body = bytes(100_000) if "Length" in framing else b"186a0\r\n%b\r\n0\r\n\r\n" % bytes(100_000)
    seen: list[int] = []

    def edit(body: bytes) -> bytes:
        seen.append(len(body))
        return body

    rules = Fixed(Decision(block_status=403, request_body=edit, delay_s=0.1))
    async with origin() as there, proxy(rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url(), framing, method="POST", body=body))
        assert (await line.reply()).status == 403
        assert there.connections == 0 and seen == []


async def test_a_response_that_is_resumed_after_its_request_was_refused_is_not_sent() -> None:
    async def answers_early(line: Line) -> None:
        await line.head()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
        await line.reader.read()

    held: asyncio.Queue[Resume] = asyncio.Queue()
    rules = Fixed(Decision(pause_response=lambda _, resume: held.put_nowait(resume)))
    async with origin(answers_early) as there, proxy(rules=rules, throttle=Slow(wait_s=0.01)) as engine:
        async with wire(engine) as line:
            await line.send(request(there.url(), "Content-Length: 10", method="POST", body=b"half"))
            resume = await held.get()
            await jumped(engine)
            assert (await line.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 408 ")
            resume(None)
            assert b"HTTP/1.1 200" not in await line.rest()
