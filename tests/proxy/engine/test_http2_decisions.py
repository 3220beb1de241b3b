"""What rules can ask of the engine holds for streams, whichever protocol the origin speaks."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from dari.proxy.engine.hooks import PASS, Decision, Direction, HeadEdit, HeaderEdits, LocalResponse, Resume
from dari.proxy.flow import Flow
from tests.support.origins.h2_peer import H2Origin, H2Peer, Side, h2_origin
from tests.support.origins.origin import Origin, answering, origin
from tests.support.proxy_engine import FAST, Memory
from tests.support.proxy_engine_h2 import NEW_TLS, OLD_TLS, decrypting, h2_client

GRPC = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\ngrpc-status: 0\r\n\r\n"
kinds = pytest.mark.parametrize("kind", ["old origin", "new origin"])


class Fixed:
    """Decrypts, and decides the same for every request."""

    def __init__(self, decision: Decision = PASS, statuses: dict[int, int] | None = None) -> None:
        self.decision = decision
        self.statuses = statuses or {}

    def decide(self, flow: Flow) -> Decision:
        return Decision(decrypts=True) if flow.method == "CONNECT" else self.decision

    def respond(self, flow: Flow, status: int) -> int:
        return self.statuses.get(status, status)


@asynccontextmanager
async def site(kind: str) -> AsyncIterator[Origin | H2Origin]:
    """Says hello with a trailer, over HTTP/1.1 or HTTP/2."""

    async def handle(peer: H2Peer, side: Side) -> None:
        await peer.answer(side)
        peer.head(side.number, 200)
        await peer.say(side.number, b"hello")
        peer.trail(side.number, (b"grpc-status", b"0"))

    if kind == "old origin":
        async with origin(answering(GRPC), OLD_TLS) as there:
            yield there
    else:
        async with h2_origin(handle, NEW_TLS) as modern:
            yield modern


def sent_up(there: Origin | H2Origin) -> bytes:
    if isinstance(there, Origin):
        return there.received
    return b"\n".join(repr(side.headers).encode() + bytes(side.body) for side in there.requests)


async def test_a_blocked_request_reaches_no_origin(tmp_path: Path) -> None:
    memory = Memory()
    rules = Fixed(Decision(block_status=451))
    async with site("new origin") as there, decrypting(tmp_path, memory, rules=rules) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", method="POST", ends=False)
            await client.until(lambda: side.reset is not None)
            assert (side.status, side.is_ended, side.reset) == (451, True, ErrorCodes.NO_ERROR)
        assert (await memory.flow()).event == "blocked" and sent_up(there) == b""


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_a_local_file_is_streamed_to_a_slow_reader(tmp_path: Path, size: int) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"x" * size)
    rules = Fixed(Decision(local=LocalResponse(file=str(file), headers=((b"Connection", b"close"),))))
    async with decrypting(tmp_path, rules=rules) as engine, h2_client(engine, 9) as client:
        side = client.ask("localhost")
        client.stalled.add(side.number)
        await client.until(lambda: len(side.body) >= min(size, 65535))
        if size > 65535:
            client.unstall(side.number)
        answer = await client.answer(side)
        assert (answer.body, answer.header("content-type")) == (b"x" * size, b"text/html")
        assert answer.header("content-length") == b"%d" % size and answer.header("x-crab-mitm") == b"map_local"
        assert answer.header("connection") is None
        head = await client.answer(client.ask("localhost", method="HEAD"))
        assert (head.body, head.header("content-length")) == (b"", b"%d" % size)


@kinds
async def test_a_request_goes_elsewhere_with_its_host(tmp_path: Path, kind: str) -> None:
    async with site(kind) as there:
        rules = Fixed(Decision(remote_url=f"https://localhost:{there.port}/new"))
        async with decrypting(tmp_path, rules=rules) as engine, h2_client(engine, 9, "old.example") as client:
            answer = await client.answer(client.ask("old.example", "/old"))
            assert (answer.body, answer.trailers) == (b"hello", [(b"grpc-status", b"0")])
        assert f"localhost:{there.port}".encode() in sent_up(there) and b"/new" in sent_up(there)


async def test_a_request_goes_to_a_plain_origin(tmp_path: Path) -> None:
    async with origin() as there:
        rules = Fixed(Decision(remote_url=there.url("/new")))
        async with decrypting(tmp_path, rules=rules) as engine, h2_client(engine, 9) as client:
            assert (await client.answer(client.ask("localhost", "/old"))).body == b"ok"


@kinds
async def test_headers_are_edited_both_ways(tmp_path: Path, kind: str) -> None:
    edits = HeaderEdits(remove=(b"X-Old",), replace=((b"X-Kept", b"new"),), add=((b"X-Added", b"1"),))
    rules = Fixed(Decision(request_edits=edits, response_edits=edits))
    async with site(kind) as there, decrypting(tmp_path, rules=rules) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost", "/", (b"x-old", b"1"), (b"x-kept", b"old")))
            assert (answer.header("x-kept"), answer.header("x-added"), answer.body) == (b"new", b"1", b"hello")
        sent = sent_up(there).lower()
        assert b"x-old" not in sent and b"new" in sent and b"x-added" in sent


@kinds
async def test_bodies_are_edited_both_ways_and_trailers_stay(tmp_path: Path, kind: str) -> None:
    rules = Fixed(Decision(request_body=bytes.upper, response_body=lambda body: body * 2))
    async with site(kind) as there, decrypting(tmp_path, rules=rules) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", method="POST", ends=False)
            await client.say(side.number, b"ab")
            await client.say(side.number, b"cd", ends=True)
            answer = await client.answer(side)
            assert (answer.body, answer.header("content-length")) == (b"hellohello", b"10")
            assert answer.trailers == [(b"grpc-status", b"0")]
        assert b"ABCD" in sent_up(there)


@kinds
async def test_a_status_is_rewritten(tmp_path: Path, kind: str) -> None:
    async with site(kind) as there, decrypting(tmp_path, rules=Fixed(Decision(), {200: 503})) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost"))
            assert (answer.status, answer.body) == (503, b"hello")
            assert answer.header("x-crab-mitm-status-rewrite") == b"200 OK->503 Service Unavailable"


@kinds
async def test_a_status_that_allows_no_body_mutes_it(tmp_path: Path, kind: str) -> None:
    async with site(kind) as there, decrypting(tmp_path, rules=Fixed(Decision(), {200: 204})) as engine:
        async with h2_client(engine, there.port) as client:
            for _ in range(2):
                answer = await client.answer(client.ask("localhost"))
                assert (answer.status, answer.body, answer.trailers, answer.is_ended) == (204, b"", None, True)


@kinds
@pytest.mark.parametrize("fault", ["reset", "truncate"])
async def test_a_fault_resets_the_stream_and_spares_the_connection(tmp_path: Path, kind: str, fault: str) -> None:
    rules = Fixed(Decision(fault=fault, truncate_bytes=3))  # type: ignore[arg-type]
    memory = Memory()
    async with site(kind) as there, decrypting(tmp_path, memory, rules=rules) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost"))
            assert answer.reset is ErrorCodes.INTERNAL_ERROR and len(answer.body) <= 3 and not answer.is_ended
            assert (await memory.flow()).event == "fault"
            rules.decision = PASS
            assert (await client.answer(client.ask("localhost"))).body == b"hello"


@kinds
async def test_a_breakpoint_edits_the_request_and_the_response(tmp_path: Path, kind: str) -> None:
    paused: asyncio.Queue[Resume] = asyncio.Queue()

    def pause(flow: Flow, resume: Resume) -> None:
        paused.put_nowait(resume)

    rules = Fixed(Decision(pause_request=pause, pause_response=pause))
    async with site(kind) as there, decrypting(tmp_path, rules=rules) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", method="POST", ends=False)
            await client.say(side.number, b"mine", ends=True)
            (await paused.get())(HeadEdit(method="PUT", headers=[(b"x-edited", b"1")]))
            (await paused.get())(HeadEdit(status=418, headers=[(b"x-answer", b"2")], body=b"edited"))
            answer = await client.answer(side)
            assert (answer.status, answer.body, answer.header("x-answer")) == (418, b"edited", b"2")
        sent = sent_up(there)
        assert b"PUT" in sent and b"x-edited" in sent and b"mine" in sent


async def test_a_client_that_leaves_during_a_breakpoint_leaves_nothing_behind(tmp_path: Path) -> None:
    paused: asyncio.Queue[Resume] = asyncio.Queue()
    memory = Memory()
    rules = Fixed(Decision(pause_request=lambda flow, resume: paused.put_nowait(resume)))
    async with site("new origin") as there, decrypting(tmp_path, memory, rules=rules) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost")
            resume = await paused.get()
            client.reset(side.number)
            await memory.flow()
            resume(None)
        assert sent_up(there) == b""


class Slow:
    """One kilobyte at a time, with a wait for each."""

    def __init__(self) -> None:
        self.taken: dict[Direction, int] = {"upstream": 0, "downstream": 0}

    def applies(self, flow: Flow) -> bool:
        return True

    def delay_s(self, flow: Flow) -> float:
        return 0.01

    def take(self, direction: Direction, n_bytes: int) -> float:
        self.taken[direction] += n_bytes
        return 0.001

    def piece_bytes(self, direction: Direction) -> int:
        return 1024


@kinds
async def test_a_throttle_slows_both_directions(tmp_path: Path, kind: str) -> None:
    throttle = Slow()
    async with site(kind) as there, decrypting(tmp_path, throttle=throttle) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", method="POST", ends=False)
            await client.say(side.number, bytes(20_000), ends=True)
            answer = await client.answer(side)
            assert (answer.body, answer.trailers) == (b"hello", [(b"grpc-status", b"0")])
        assert throttle.taken["upstream"] >= 20_000 and throttle.taken["downstream"] >= 5


@kinds
async def test_a_recorder_that_spools_gets_both_bodies(tmp_path: Path, kind: str) -> None:
    memory = Memory(spools=True)
    config = replace(FAST, sample_bytes=2)
    async with site(kind) as there, decrypting(tmp_path, memory, config) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", method="POST", ends=False)
            await client.say(side.number, b"abc" * 10_000, ends=True)
            await client.answer(side)
        flow = await memory.flow()
        assert (memory.up, memory.down) == (b"abc" * 10_000, b"hello")
        assert (flow.request_body.outcome, flow.response_body.outcome) == ("complete", "complete")
