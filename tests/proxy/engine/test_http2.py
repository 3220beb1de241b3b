"""HTTP/2 towards clients, with origins of HTTP/1.1: every stream is a request like any other."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from tests.support.origins.origin import OK, Line, answering, origin
from tests.support.proxy_engine import FAST, Memory
from tests.support.proxy_engine_h2 import OLD_TLS, OURS, decrypting, h2_client

CURL = shutil.which("curl")


async def test_a_request_on_a_stream_is_seen_and_answered(tmp_path: Path) -> None:
    memory = Memory()
    data = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-Case: Kept\r\n\r\nhello"
    async with origin(answering(data), OLD_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost", "/a?b=1", (b"x-mine", b"1")))
            assert (answer.status, answer.body) == (200, b"hello")
            assert answer.header("x-case") == b"Kept" and answer.header("content-length") == b"5"
        flow = await memory.flow()
        assert (flow.url, flow.http_version, flow.status) == ("https://localhost/a?b=1", "2", 200)
        assert flow.request_headers == [(b"x-mine", b"1")]
        assert flow.tls is not None and (flow.tls.client_alpn, flow.tls.upstream_alpn) == ("h2", "http/1.1")
        assert there.requests[0].head.startswith(b"GET /a?b=1 HTTP/1.1\r\nHost: localhost\r\n")


async def test_streams_are_served_side_by_side(tmp_path: Path) -> None:
    """The first is answered last."""
    waiting: list[Line] = []
    everyone = asyncio.Event()

    async def handle(line: Line) -> None:
        seen = await line.request()
        assert seen is not None
        waiting.append(line)
        if len(waiting) == 30:
            everyone.set()
        await everyone.wait()
        if seen.head.startswith(b"GET /0 "):
            await last.wait()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    last = asyncio.Event()
    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            asked = [client.ask("localhost", f"/{number}") for number in range(30)]
            for side in asked[1:]:
                assert (await client.answer(side)).body == b"ok"
            assert not asked[0].is_over
            last.set()
            assert (await client.answer(asked[0])).body == b"ok"
    assert there.connections == 30


async def test_a_connection_to_the_origin_serves_one_stream_after_another(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            for _ in range(5):
                assert (await client.answer(client.ask("localhost"))).body == b"ok"
    assert there.connections == 1


@pytest.mark.parametrize("length", [None, 300_000])
async def test_a_large_upload_arrives_whole(tmp_path: Path, length: int | None) -> None:
    body = bytes(range(250)) * 1200
    more = [] if length is None else [(b"content-length", b"%d" % length)]
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", "/", *more, method="POST", ends=False)
            await client.say(side.number, body, ends=True)
            assert (await client.answer(side)).status == 200
    seen = there.requests[0]
    if length is None:
        assert seen.header("transfer-encoding") == "chunked"
        assert unchunked(seen.body) == body
    else:
        assert seen.header("content-length") == "300000" and seen.body == body


def unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        if not int(size, 16):
            break
        body += data[: int(size, 16)]
        data = data[int(size, 16) + 2 :]
    return body


async def test_a_small_body_goes_up_with_its_length(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            client.wire.send_headers(1, [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"localhost"),
                                         (b":path", b"/")])  # fmt: skip
            client.wire.send_data(1, b"whole", end_stream=True)
            client.flush()
            await client.until(lambda: 1 in client.sides and client.sides[1].is_over)
            empty = client.ask("localhost", method="POST")
            await client.answer(empty)
    assert (there.requests[0].header("content-length"), there.requests[0].body) == ("5", b"whole")
    assert there.requests[1].header("content-length") == "0"


async def test_a_large_download_arrives_whole(tmp_path: Path) -> None:
    body = bytes(range(250)) * 20_000
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    async with origin(answering(data), OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            asked = [client.ask("localhost") for _ in range(3)]
            for side in asked:
                assert (await client.answer(side)).body == body


async def test_a_stalled_stream_holds_up_neither_memory_nor_others(tmp_path: Path) -> None:
    sent = 0

    async def handle(line: Line) -> None:
        nonlocal sent
        while (seen := await line.request()) is not None:
            if seen.head.startswith(b"GET /small"):
                await line.say(OK)
                continue
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (20 << 20))
            for _ in range(20):
                await line.say(bytes(1 << 20))
                sent += 1

    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            client.wire.increment_flow_control_window(64 << 20)  # of the connection: the stream's is what stalls
            large = client.ask("localhost", "/large")
            client.stalled.add(large.number)
            for _ in range(100):
                assert (await client.answer(client.ask("localhost", "/small"))).body == b"ok"
            assert sent < 12 and len(large.body) <= 65535
            client.unstall(large.number)
            await client.until(lambda: len(large.body) == 20 << 20 and large.is_ended)


async def test_an_upload_waits_for_an_origin_that_does_not_read(tmp_path: Path) -> None:
    may_read = asyncio.Event()

    async def handle(line: Line) -> None:
        while (seen := await line.head()) is not None:
            if seen.head.startswith(b"GET"):
                await line.say(OK)
                continue
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await may_read.wait()
            line.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await line.body(seen)
            await line.say(OK)

    size = 30 << 20
    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", "/", (b"content-length", b"%d" % size), method="PUT", ends=False)
            sending = asyncio.create_task(client.say(side.number, bytes(size), ends=True))
            for _ in range(50):
                assert (await client.answer(client.ask("localhost"))).body == b"ok"
            assert not sending.done()
            may_read.set()
            assert (await client.answer(side)).status == 200
            await sending


async def test_trailers_pass_both_ways(tmp_path: Path) -> None:
    memory = Memory()
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"
    async with origin(answering(data), OLD_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", "/", (b"te", b"trailers"), method="POST", ends=False)
            await client.say(side.number, b"abc")
            client.trail(side.number, (b"x-mine", b"1"))
            answer = await client.answer(side)
            assert (answer.body, answer.trailers) == (b"ok", [(b"x-sum", b"7")])
            assert answer.header("trailer") == b"x-sum" and answer.header("transfer-encoding") is None
        assert there.requests[0].body.endswith(b"0\r\nx-mine: 1\r\n\r\n")
        assert there.requests[0].header("te") == "trailers"
        flow = await memory.flow()
        assert flow.request_body.trailers == [(b"x-mine", b"1")]
        assert flow.response_body.trailers == [(b"X-Sum", b"7")]


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    ],
)
async def test_a_response_without_a_body_ends_with_its_head(tmp_path: Path, method: str, head: bytes) -> None:
    async with origin(answering(head), OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            for _ in range(2):
                answer = await client.answer(client.ask("localhost", method=method))
                assert answer.is_ended and answer.body == b"" and answer.status == int(head.split(b" ")[1])
    assert there.connections == 1


async def test_a_body_that_ends_with_its_connection_ends_the_stream(tmp_path: Path) -> None:
    data = b"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\nuntil the end"
    async with origin(answering(data, closes=True), OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost"))
            assert (answer.status, answer.body, answer.reset) == (200, b"until the end", None)
            assert answer.header("connection") is None and answer.header("x-hop") is None
            assert (await client.answer(client.ask("localhost"))).status == 200


async def test_early_heads_come_before_the_response(tmp_path: Path) -> None:
    data = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK
    async with origin(answering(data), OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost"))
            assert answer.early == [[(b":status", b"103"), (b"link", b"</a>")]]
            assert (answer.status, answer.body) == (200, b"ok")


async def test_a_client_that_waits_for_100_gets_it(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path, config=replace(FAST, continue_s=0.01)) as engine:
        async with h2_client(engine, there.port) as client:
            more = (b"expect", b"100-continue"), (b"content-length", b"3")
            side = client.ask("localhost", "/", *more, method="POST", ends=False)
            await client.until(lambda: side.early)
            assert side.early == [[(b":status", b"100")]]
            await client.say(side.number, b"abc", ends=True)
            assert (await client.answer(side)).status == 200
    assert there.requests[0].body == b"abc"


async def test_a_stream_that_the_client_resets_ends_at_the_origin(tmp_path: Path) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def handle(line: Line) -> None:
        seen = await line.request()
        if seen is not None and seen.head.startswith(b"GET /slow"):
            asked.set()
            assert await line.reader.read() == b""
            ended.set()
        else:
            await line.say(OK)

    memory = Memory()
    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", "/slow")
            await asked.wait()
            client.reset(side.number)
            await ended.wait()
            flow = await memory.flow()
            assert flow.error == "the client: the stream was reset: CANCEL"
            assert (await client.answer(client.ask("localhost"))).body == b"ok"


async def test_an_origin_that_fails_before_its_head_gives_502(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        await line.request()

    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost"))
            assert (answer.status, answer.header("connection")) == (502, None)
            assert b"without a response" in answer.body


@pytest.mark.parametrize("length", [b"Content-Length: 9", b"Transfer-Encoding: chunked"])
async def test_an_origin_that_fails_inside_its_body_resets_the_stream(tmp_path: Path, length: bytes) -> None:
    async def handle(line: Line) -> None:
        seen = await line.request()
        if seen is not None and seen.head.startswith(b"GET /whole"):
            await line.say(OK)
            return
        await line.say(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n3\r\nab")
        line.reset()

    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask("localhost"))
            assert answer.reset is ErrorCodes.INTERNAL_ERROR and not answer.is_ended
            assert (await client.answer(client.ask("localhost", "/whole"))).body == b"ok"


async def test_an_answer_that_comes_early_ends_the_upload(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        await line.head()
        await line.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")

    memory = Memory()
    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost", method="POST", ends=False)
            await client.say(side.number, b"some")
            await client.until(lambda: side.reset is not None)
            assert (side.status, side.body, side.is_ended, side.reset) == (413, b"no", True, ErrorCodes.NO_ERROR)
            assert (await memory.flow()).status == 413


async def test_crumbs_of_a_cookie_reach_an_old_origin_as_one(tmp_path: Path) -> None:
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            more = (b"cookie", b"a=1"), (b"x-between", b"1"), (b"cookie", b"b=2")
            await client.answer(client.ask("localhost", "/", *more))
    assert there.requests[0].header("cookie") == "a=1; b=2"
    assert there.requests[0].head.lower().count(b"cookie:") == 1


async def test_the_engine_says_goodbye_when_it_stops(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await asyncio.Event().wait()

    memory = Memory()
    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask("localhost")
            await memory.until_begun(1)
            await engine.stop()
            await client.closed()
            assert client.goaway is ErrorCodes.NO_ERROR and not side.is_ended
        assert (await memory.flow()).error is not None
        assert engine.connection_count == 0


async def test_an_idle_connection_is_closed_with_a_word(tmp_path: Path) -> None:
    config = replace(FAST, idle_timeout_s=0.4)
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path, config=config) as engine:
        async with h2_client(engine, there.port) as client:
            await client.answer(client.ask("localhost"))
            await client.closed()
            assert client.goaway is ErrorCodes.NO_ERROR


async def test_deadlines_hold_for_each_stream(tmp_path: Path) -> None:
    async def handle(line: Line) -> None:
        while (seen := await line.request()) is not None:
            if seen.head.startswith(b"GET /never"):
                await asyncio.Event().wait()
            await line.say(OK)

    # Long enough for the last one, which is answered, on a busy machine.
    config = replace(FAST, response_timeout_s=0.4, request_timeout_s=0.4)
    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path, config=config) as engine:
        async with h2_client(engine, there.port) as client:
            silent = client.ask("localhost", "/never")
            unfinished = client.ask("localhost", method="POST", ends=False)
            assert (await client.answer(silent)).status == 504
            assert (await client.answer(unfinished)).status == 408
            assert (await client.answer(client.ask("localhost"))).status == 200


async def test_a_client_of_http1_is_still_served_on_the_same_engine(tmp_path: Path) -> None:
    assert CURL is not None, "curl is needed"
    (tmp_path / "ca.pem").write_bytes(OURS.pem)
    async with origin(tls=OLD_TLS) as there, decrypting(tmp_path) as engine:
        assert engine.address is not None
        for option, version in (("--http1.1", b"1.1"), ("--http2", b"2")):
            process = await asyncio.create_subprocess_exec(
                CURL, "-sS", "--max-time", "10", option, "-x", f"http://127.0.0.1:{engine.address[1]}", "--noproxy", "",
                "--cacert", str(tmp_path / "ca.pem"), "-w", " %{http_code} %{http_version}",
                f"https://localhost:{there.port}/", stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert (await process.communicate())[0] == b"ok 200 " + version


def test_h2_is_not_imported_before_a_client_speaks_it() -> None:
    code = "import sys, dari.proxy.engine.listener; sys.exit('h2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0
