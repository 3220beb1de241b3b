"""What rules can ask of the engine, asked directly: one decision per test."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dari.proxy.engine.hooks import Decision, Direction, HeadEdit, HeaderEdits, LocalResponse, Resume
from dari.proxy.flow import Flow
from tests.support.origins.origin import Line, answering, origin
from tests.support.proxy_engine import Fixed, Memory, proxy, request, tunnel, wire


async def test_a_flow_left_out_by_the_rules_is_proxied_and_not_recorded() -> None:
    memory = Memory(spools=True)
    rules = Fixed(Decision(is_recorded=False))
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        assert (await line.get(there.url())).body == b"ok"
        assert memory.flows == [] and memory.down == b""


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
async def test_map_local_text_answers_without_the_origin(method: str) -> None:
    memory = Memory()
    local = LocalResponse(418, ((b"Content-Type", b"text/plain"),), b"short and stout")
    rules = Fixed(Decision(local=local, map_local="/pot", rule_ids=("r1",)))
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        for _ in range(2):
            body = b"hello" if method == "POST" else b""
            await line.send(request(there.url(), f"Content-Length: {len(body)}", method=method, body=body))
            reply = await line.reply(method)
            assert (reply.status, reply.header("x-crab-mitm")) == (418, "map_local")
            assert reply.body == (b"" if method == "HEAD" else b"short and stout")
        flow = await memory.flow(2)
        assert (flow.event, flow.map_local, flow.rule_ids) == ("map_local", "/pot", ("r1",))
        assert there.connections == 0


async def test_map_local_streams_a_file_and_guesses_its_type(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"<p>" + bytes(3_000_000))
    rules = Fixed(Decision(local=LocalResponse(file=str(file))))
    async with proxy(rules=rules) as engine, wire(engine) as line:
        reply = await line.get("http://nowhere.invalid/")
        assert reply.header("content-type") == "text/html"
        assert reply.body == file.read_bytes()


async def test_map_local_without_its_file_is_502(tmp_path: Path) -> None:
    for path in (tmp_path / "gone", tmp_path):
        rules = Fixed(Decision(local=LocalResponse(file=str(path))))
        async with proxy(rules=rules) as engine, wire(engine) as line:
            assert (await line.get("http://nowhere.invalid/")).status == 502


async def test_map_local_answers_an_expectation_finally_and_closes() -> None:
    rules = Fixed(Decision(local=LocalResponse(200, (), b"done")))
    async with proxy(rules=rules) as engine, wire(engine) as line:
        await line.send(request("http://nowhere.invalid/", "Expect: 100-continue", "Content-Length: 5", method="POST"))
        reply = await line.reply()
        assert (reply.status, reply.header("connection")) == (200, "close")


async def test_map_remote_goes_elsewhere_with_its_host() -> None:
    memory = Memory()
    async with origin() as there:
        rules = Fixed(Decision(remote_url=there.url("/new?x=1"), map_remote="/old"))
        async with proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
            assert (await line.get("http://nowhere.invalid/old")).status == 200
            seen = there.requests[0]
            assert seen.head.startswith(b"GET /new?x=1 ") and seen.header("host") == there.authority
            flow = await memory.flow()
            assert (flow.event, flow.map_remote, flow.map_remote_to) == ("map_remote", "/old", there.url("/new?x=1"))
            assert flow.url == "http://nowhere.invalid/old"


async def test_map_remote_to_no_url_is_502() -> None:
    async with proxy(rules=Fixed(Decision(remote_url="nonsense"))) as engine, wire(engine) as line:
        assert (await line.get("http://nowhere.invalid/")).status == 502


async def test_a_rewritten_status_is_announced_and_both_are_recorded() -> None:
    memory = Memory()
    rules = Fixed(statuses={200: 503})
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        reply = await line.get(there.url())
        assert (reply.status, reply.body) == (503, b"ok")
        assert reply.header("x-crab-mitm-status-rewrite") == "200 OK->503 Service Unavailable"
        flow = await memory.flow()
        assert (flow.status, flow.upstream_status) == (503, 200)


@pytest.mark.parametrize("status", [204, 304])
async def test_a_status_rewritten_to_one_without_a_body_loses_it(status: int) -> None:
    async with origin() as there, proxy(rules=Fixed(statuses={200: status})) as engine, wire(engine) as line:
        for _ in range(2):
            reply = await line.get(there.url())
            assert reply.head.startswith(b"HTTP/1.1 %d " % status)  # not one byte of a body stands before it
            assert reply.header("content-length") is None


@pytest.mark.parametrize("head", ["304 Not Modified\r\nContent-Length: 5", "304 Not Modified", "204 No Content"])
async def test_a_status_rewritten_from_one_without_a_body_gets_an_empty_one(head: str) -> None:
    data = f"HTTP/1.1 {head}\r\n\r\n".encode()
    rules = Fixed(statuses={204: 200, 304: 200})
    async with origin(answering(data)) as there, proxy(rules=rules) as engine, wire(engine) as line:
        for _ in range(2):
            reply = await line.get(there.url())
            assert (reply.status, reply.header("content-length")) == (200, "0")
        assert there.connections == 1


async def test_headers_are_edited_both_ways() -> None:
    edits = HeaderEdits(remove=(b"x-old",), replace=((b"X-Set", b"2"),), add=((b"X-New", b"3"),))
    rules = Fixed(Decision(request_edits=edits, response_edits=edits))
    data = b"HTTP/1.1 200 OK\r\nX-Old: 1\r\nX-Set: 1\r\nContent-Length: 0\r\n\r\n"
    async with origin(answering(data)) as there, proxy(rules=rules) as engine, wire(engine) as line:
        reply = await line.get(there.url(), "X-Old: 1", "X-Set: 1")
        for message in (there.requests[0], reply):
            values = [message.header(name) for name in ("x-old", "x-set", "x-new")]
            assert values == [None, "2", "3"]


async def test_an_edit_cannot_smuggle_a_line() -> None:
    edits = HeaderEdits(add=((b"X-New", b"1\r\nX-Evil: 2"),))
    rules = Fixed(Decision(request_edits=edits))
    async with origin() as there, proxy(rules=rules) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 502
        assert there.connections == 0


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
async def test_bodies_are_replaced_both_ways(is_chunked: bool) -> None:
    rules = Fixed(Decision(request_body=lambda body: body.upper(), response_body=lambda body: body * 2))
    chunks = b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"
    framing, body = ("Transfer-Encoding: chunked", chunks) if is_chunked else ("Content-Length: 6", b"abcdef")
    data = b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (framing.encode(), body)
    async with origin(answering(data)) as there, proxy(rules=rules) as engine, wire(engine) as line:
        for _ in range(2):
            await line.send(request(there.url(), framing, method="POST"))
            await line.send(body[:5])
            await line.send(body[5:])
            reply = await line.reply()
            assert (reply.body, reply.header("content-length")) == (b"abcdefabcdef", "12")
            assert (there.requests[-1].body, there.requests[-1].header("content-length")) == (b"ABCDEF", "6")


async def test_a_body_that_an_edit_leaves_as_it_is_keeps_its_framing() -> None:
    rules = Fixed(Decision(request_body=lambda body: body, response_body=lambda body: body))
    chunks = b"3\r\nabc\r\n0\r\n\r\n"
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n"
    async with origin(answering(data)) as there, proxy(rules=rules) as engine, wire(engine) as line:
        reply = await line.get(there.url())
        assert (reply.body, reply.trailers, reply.header("content-length")) == (b"abc", b"X-Sum: 6\r\n", None)
        assert there.requests[-1].header("content-length") is None
        await line.send(request(there.url(), "Transfer-Encoding: chunked", method="POST", body=chunks))
        assert (await line.reply()).body == b"abc"
        assert there.requests[-1].body == chunks
        with_trailer = chunks[:-2] + b"X-Auth: plum\r\n\r\n"
        await line.send(request(there.url(), "Transfer-Encoding: chunked", method="POST", body=with_trailer))
        assert (await line.reply()).body == b"abc"
        assert there.requests[-1].body == b"abc", "what nobody looked at does not go along"


@pytest.mark.parametrize("way", ["request_body", "response_body"])
async def test_others_are_served_while_a_rule_edits_a_body(way: str) -> None:
    is_served = threading.Event()

    def edit(body: bytes) -> bytes:
        assert body != b"slow" or is_served.wait(20)
        return body.upper()

    async def echo(line: Line) -> None:
        while (asked := await line.request()) is not None:
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(asked.body), asked.body))

    rules = Fixed(Decision(**{way: edit}))
    async with origin(echo) as there, proxy(rules=rules) as engine, wire(engine) as slow, wire(engine) as other:
        await slow.send(request(there.url(), "Content-Length: 4", method="POST", body=b"slow"))
        await other.send(request(there.url(), "Content-Length: 4", method="POST", body=b"fast"))
        assert (await other.reply()).body == b"FAST"
        is_served.set()
        assert (await slow.reply()).body == b"SLOW"


@pytest.mark.parametrize("way", ["request_body", "response_body"])
async def test_an_edit_that_fails_is_502_and_the_client_goes_on(way: str) -> None:
    def edit(body: bytes) -> bytes:
        raise MemoryError

    memory = Memory()
    rules = Fixed(Decision(**{way: edit}))
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        for _ in range(2):
            await line.send(request(there.url(), "Content-Length: 4", method="POST", body=b"abcd"))
            assert (await line.reply()).status == 502
        assert "edit of the body failed: MemoryError" in ((await memory.flow(2)).error or "")


async def test_block_answers_with_its_status() -> None:
    memory = Memory()
    rules = Fixed(Decision(block_status=403))
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 403
        await line.send(f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\n".encode())
        assert (await line.reply()).status == 403
        assert (await memory.flow(2)).event == "blocked"
        assert there.connections == 0


async def test_a_reset_fault_resets() -> None:
    memory = Memory()
    rules = Fixed(Decision(fault="reset"))
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url()))
        with pytest.raises(ConnectionResetError):
            await line.rest()
        assert (await memory.flow()).event == "fault"


async def test_a_truncate_fault_cuts_the_body() -> None:
    memory = Memory()
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
    rules = Fixed(Decision(fault="truncate", truncate_bytes=4))
    async with origin(answering(data)) as there, proxy(recorder=memory, rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url()))
        assert (await line.rest()).endswith(b"\r\n\r\n0123")
        assert (await memory.flow()).event == "fault"


async def test_a_delay_comes_before_the_origin_is_asked() -> None:
    async with origin() as there, proxy(rules=Fixed(Decision(delay_s=0.02))) as engine, wire(engine) as line:
        await line.send(request(there.url(), "Content-Length: 4", method="POST"))
        await line.send(b"body")
        assert (await line.reply()).status == 200
        assert there.requests[0].body == b"body"


async def test_a_paused_request_waits_and_goes_on_edited() -> None:
    held: asyncio.Queue[tuple[Flow, Resume]] = asyncio.Queue()
    rules = Fixed(Decision(pause_request=lambda flow, resume: held.put_nowait((flow, resume))))
    async with origin() as there, proxy(rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url("/a"), "Content-Length: 3", method="POST", body=b"old"))
        flow, resume = await held.get()
        assert flow.target == "/a" and there.connections == 0
        resume(HeadEdit(method="PUT", url=there.url("/b"), headers=[(b"X-Edit", b"1")], body=b"newer"))
        resume(None)  # a second time changes nothing
        assert (await line.reply()).status == 200
        seen = there.requests[0]
        assert seen.head.startswith(b"PUT /b ") and (seen.body, seen.header("x-edit")) == (b"newer", "1")
        assert seen.header("host") == there.authority


async def test_a_paused_request_can_be_aborted_and_outlives_its_client() -> None:
    held: asyncio.Queue[tuple[Flow, Resume]] = asyncio.Queue()
    memory = Memory()
    rules = Fixed(Decision(pause_request=lambda flow, resume: held.put_nowait((flow, resume))))
    async with origin() as there, proxy(recorder=memory, rules=rules) as engine:
        async with wire(engine) as line:
            await line.send(request(there.url()))
            (await held.get())[1](HeadEdit(abort=True))
            assert (await line.reply()).status == 502
        async with wire(engine) as line:
            await line.send(request(there.url()))
            _, resume = await held.get()
            line.reset()
            await memory.flow(2)
        resume(None)
        assert there.connections == 0


async def test_a_paused_response_waits_and_goes_on_edited() -> None:
    held: asyncio.Queue[tuple[Flow, Resume]] = asyncio.Queue()
    rules = Fixed(Decision(pause_response=lambda flow, resume: held.put_nowait((flow, resume))))
    async with origin() as there, proxy(rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url()))
        flow, resume = await held.get()
        assert flow.upstream_status == 200
        resume(HeadEdit(status=404, headers=[(b"X-Edit", b"1")], body=b"gone"))
        reply = await line.reply()
        assert (reply.status, reply.body, reply.header("x-edit")) == (404, b"gone", "1")
        await line.send(request(there.url()))
        (await held.get())[1](None)
        assert (await line.reply()).body == b"ok"


async def test_a_paused_response_is_bounded_while_its_origin_goes_on_sending() -> None:
    held: asyncio.Queue[tuple[Flow, Resume]] = asyncio.Queue()
    rules = Fixed(Decision(pause_response=lambda flow, resume: held.put_nowait((flow, resume))))
    size = 30 << 20
    sent = 0

    async def handle(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while sent < size:
            await line.say(bytes(1 << 20))
            sent += 1 << 20

    async with origin(handle) as there, proxy(rules=rules) as engine, wire(engine) as line:
        await line.send(request(there.url()))
        flow, resume = await held.get()
        assert flow.response_body.size_bytes < 2 << 20
        resume(None)
        assert len((await line.reply()).body) == size


class Slow:
    """A throttle that counts, and lets a piece wait a millisecond."""

    def __init__(self) -> None:
        self.taken = {"downstream": 0, "upstream": 0}

    def applies(self, flow: Flow) -> bool:
        return True

    def delay_s(self, flow: Flow) -> float:
        return 0.001

    def take(self, direction: Direction, n_bytes: int) -> float:
        self.taken[direction] += n_bytes
        return 0.001

    def piece_bytes(self, direction: Direction) -> int:
        return 1000


async def test_a_throttle_paces_both_directions_in_pieces() -> None:
    down = b"d" * 20_000
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(down), down)
    slow = Slow()
    async with origin(answering(data)) as there, proxy(throttle=slow) as engine, wire(engine) as line:
        for turn in (1, 2):
            await line.send(request(there.url(), "Content-Length: 5000", method="POST"))
            await line.send(b"u" * 5000)
            assert (await line.reply()).body == down
            assert there.requests[-1].body == b"u" * 5000
            assert slow.taken["downstream"] == turn * 20_000
            assert slow.taken["upstream"] >= turn * 5000


async def test_a_throttle_paces_tunnels() -> None:
    slow = Slow()

    async def handle(line: Line) -> None:
        await line.say(await line.reader.readexactly(3000))

    async with origin(handle) as there, proxy(throttle=slow) as engine, tunnel(engine, there.authority) as line:
        await line.send(b"x" * 3000)
        assert len(await line.reader.readexactly(3000)) == 3000
        assert slow.taken == {"downstream": 3000, "upstream": 3000}


async def test_a_throttle_paces_mapped_answers() -> None:
    slow = Slow()
    rules = Fixed(Decision(local=LocalResponse(200, (), b"m" * 5000)))
    async with proxy(rules=rules, throttle=slow) as engine, wire(engine) as line:
        for turn in (1, 2):
            assert (await line.get("http://nowhere.invalid/")).body == b"m" * 5000
            assert slow.taken["downstream"] == turn * 5000
