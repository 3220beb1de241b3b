"""A throttle keeps part of an upload back: no connection is used again, and no time limit runs, before it is sent."""

from __future__ import annotations

import asyncio

import pytest

from dari.proxy.engine.hooks import Decision, Direction, Resume
from dari.proxy.flow import Flow
from tests.support.origins.origin import OK, Line, origin
from tests.support.proxy_engine import Fixed, Memory, jumped, proxy, request, wire
from tests.support.waiting import until

NEVER_S = 3600.0


class Gate:
    """A throttle that lets so many pieces of uploads pass; the next wait for `wait_s`."""

    def __init__(self, passes: int, wait_s: float = NEVER_S, piece_bytes: int = 1000) -> None:
        self.passes = passes
        self._wait_s = wait_s
        self._piece_bytes = piece_bytes
        self.is_reached = asyncio.Event()

    def applies(self, flow: Flow) -> bool:
        return True

    def delay_s(self, flow: Flow) -> float:
        return 0.0

    def take(self, direction: Direction, n_bytes: int) -> float:
        if direction == "downstream":
            return 0.0
        self.passes -= 1
        if self.passes >= 0:
            return 0.0
        self.is_reached.set()
        return self._wait_s

    def piece_bytes(self, direction: Direction) -> int:
        return self._piece_bytes

    def open(self) -> None:
        self.passes = 1_000_000


EARLY = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"


async def answers_early(line: Line) -> None:
    """413 for /a as soon as its head is here, then the rest of its body; 200 for all else."""
    while (seen := await line.head()) is not None:
        if b" /a " in seen.head:
            await line.say(EARLY)
        await line.body(seen)
        line.origin.requests.append(seen)
        if b" /a " not in seen.head:
            await line.say(OK)


@pytest.mark.parametrize("framing", ["Content-Length: 65536", "Transfer-Encoding: chunked"])
async def test_a_connection_with_an_unsent_rest_serves_no_other_request(framing: str) -> None:
    body = bytes(65536) if "Length" in framing else b"10000\r\n%b\r\n0\r\n\r\n" % bytes(65536)
    gate = Gate(passes=2)
    async with origin(answers_early) as there, proxy(throttle=gate) as engine, wire(engine) as line:
        await line.send(request(there.url("/a"), framing, method="POST", body=body))
        assert (await line.reply()).status == 413
        gate.open()
        assert (await line.get(there.url("/b"))).body == b"ok"
        assert [seen.head.split()[1] for seen in there.requests] == [b"/b"]
        assert b"GET /b" not in there.requests[0].body and there.connections == 2


async def test_a_connection_whose_upload_ends_behind_an_early_answer_serves_no_other_request() -> None:
    gate = Gate(passes=1)
    async with origin(answers_early) as there, proxy(throttle=gate) as engine, wire(engine) as line:
        await line.send(request(there.url("/a"), "Content-Length: 5000", method="POST"))
        assert (await line.reply()).status == 413
        await line.send(bytes(5000))
        await gate.is_reached.wait()
        gate.open()
        assert (await line.get(there.url("/b"))).body == b"ok"
        assert there.connections == 2


async def test_a_throttled_upload_that_was_sent_whole_leaves_its_connection_to_the_next() -> None:
    gate = Gate(passes=0, wait_s=0.001)
    async with origin() as there, proxy(throttle=gate) as engine, wire(engine) as line:
        for _ in range(2):
            await line.send(request(there.url(), "Content-Length: 5000", method="POST", body=bytes(5000)))
            assert (await line.reply()).body == b"ok"
        assert there.connections == 1


async def test_a_throttled_request_that_is_sent_again_begins_anew() -> None:
    async def handle(line: Line) -> None:
        if line.origin.connections > 1:
            while await line.request() is not None:
                await line.say(OK)
            return
        await line.request()
        await line.say(OK)
        await line.head()
        line.reset()

    gate = Gate(passes=3)
    body = b"".join(b"%9d\n" % number for number in range(500))
    async with origin(handle) as there, proxy(throttle=gate) as engine, wire(engine) as line:
        assert (await line.get(there.url("/a"))).body == b"ok"
        await line.send(request(there.url("/b"), f"Content-Length: {len(body)}", method="PUT", body=body))
        await gate.is_reached.wait()
        gate.open()
        assert (await line.reply()).body == b"ok"
        assert there.connections == 2 and there.requests[-1].body == body


@pytest.mark.parametrize("sent", [0, 2000, 4000], ids=["head", "half", "all"])
async def test_no_time_limit_runs_while_a_throttle_keeps_an_upload_back(sent: int) -> None:
    gate = Gate(passes=1, wait_s=0.005, piece_bytes=1)
    memory = Memory()
    async with origin() as there, proxy(recorder=memory, throttle=gate) as engine, wire(engine) as line:
        await line.send(request(there.url(), "Content-Length: 4000", method="POST", body=bytes(sent)))
        await gate.is_reached.wait()
        await jumped(engine, NEVER_S)
        gate.open()
        await line.send(bytes(4000 - sent))
        assert (await line.reply()).body == b"ok"
        assert there.requests[0].body == bytes(4000)


@pytest.mark.parametrize(("sent", "status"), [(2000, 408), (4000, 504)])
async def test_the_time_limits_run_once_a_throttled_upload_is_sent(sent: int, status: int) -> None:
    arrived = asyncio.Event()

    async def silent(line: Line) -> None:
        await line.head()
        await line.reader.readexactly(sent)
        arrived.set()
        await line.reader.read()

    gate = Gate(passes=1, wait_s=0.001)
    async with origin(silent) as there, proxy(throttle=gate) as engine, wire(engine) as line:
        await line.send(request(there.url(), "Content-Length: 4000", method="POST", body=bytes(sent)))
        await arrived.wait()
        await jumped(engine, NEVER_S)
        assert (await line.reply()).status == status


async def test_an_origin_that_switches_protocols_before_the_request_is_sent_is_502() -> None:
    async def handle(line: Line) -> None:
        await line.reader.read(1)
        await line.say(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        await line.reader.read()

    async with origin(handle) as there, proxy(throttle=Gate(passes=1, piece_bytes=20)) as engine, wire(engine) as line:
        reply = await line.get(there.url(), "Connection: Upgrade", "Upgrade: websocket")
        assert reply.status == 502


async def test_an_answer_held_at_a_breakpoint_outlives_the_end_of_its_upload() -> None:
    held: asyncio.Queue[Resume] = asyncio.Queue()
    memory = Memory(spools=True)
    rules = Fixed(Decision(pause_response=lambda _, resume: held.put_nowait(resume)))
    async with origin(answers_early) as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url("/a"), "Content-Length: 10", method="POST", body=bytes(5)))
        resume = await held.get()
        await line.send(bytes(5))
        await until(lambda: len(memory.up) == 10)
        await jumped(engine, NEVER_S)
        resume(None)
        assert (await line.reply()).status == 413
