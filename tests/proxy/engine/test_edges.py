"""Appendix A of the reference, row by row: raw bytes in, and beside them the right outcome.

`o` is what reached the origin; a row that is refused must reach it with no byte at all.
"""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
import re

import pytest

from tests.support.origins.origin import OK, Line, Origin, answering, origin
from tests.support.proxy_engine import Memory, proxy, request, wire

CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"
SECOND = b"GET http://ORIGIN/second HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"


def status_lines(answer: bytes) -> int:
    return len(re.findall(rb"^HTTP/1\.1 \d", answer, re.MULTILINE))


def post(*headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    return request("http://ORIGIN/", *headers, method="POST", version=version, body=body)


REFUSED = {
    "CL+TE": (400, post("Content-Length: 5", "Transfer-Encoding: chunked", body=CHUNKS)),
    "TE+CL": (400, post("Transfer-Encoding: chunked", "Content-Length: 5", body=CHUNKS)),
    "dup CL differing": (400, post("Content-Length: 5", "Content-Length: 6", body=b"hello!")),
    "dup CL same": (400, post("Content-Length: 5", "Content-Length: 5", body=b"hello")),
    "CL +5": (400, post("Content-Length: +5", body=b"hello")),
    "CL 5, 5": (400, post("Content-Length: 5, 5", body=b"hello")),
    "CL 0x5": (400, post("Content-Length: 0x5", body=b"hello")),
    "CL empty": (400, post("Content-Length:", body=b"hello")),
    "CL -5": (400, post("Content-Length: -5", body=b"hello")),
    "CL of 20 digits": (400, post("Content-Length: 99999999999999999999", body=b"hello")),
    "TE xchunked": (400, post("Transfer-Encoding: xchunked", body=CHUNKS)),
    "TE chunked,identity": (400, post("Transfer-Encoding: chunked, identity", body=CHUNKS)),
    "TE twice": (400, post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNKS)),
    "TE<space>: chunked": (400, post("Transfer-Encoding : chunked", body=CHUNKS)),
    "obs-fold": (400, post("X-Fold: a", " b")),
    "bare LF lines": (400, b"GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\n\n"),
    "one bare LF": (400, b"GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\nX: y\r\n\r\n"),
    "NUL in value": (400, post("X-Bad: a\0b")),
    "bare CR in value": (400, post("X-Bad: a\rb")),
    "chunk LF only": (400, post("Transfer-Encoding: chunked", body=b"5\nhello\n0\n\n")),
    "chunk bad CRLF after data": (400, post("Transfer-Encoding: chunked", body=b"5\r\nhelloXX0\r\n\r\n")),
    "chunk ext with LF": (400, post("Transfer-Encoding: chunked", body=b"5;a\nb\r\nhello\r\n0\r\n\r\n")),
    "chunk size overflow": (400, post("Transfer-Encoding: chunked", body=b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n")),
    "chunk size empty": (400, post("Transfer-Encoding: chunked", body=b"\r\nhello\r\n0\r\n\r\n")),
    "chunk trailer with framing": (400, post("Transfer-Encoding: chunked", body=b"0\r\nContent-Length: 5\r\n\r\n")),
    "HTTP/1.0 + TE chunked": (400, post("Transfer-Encoding: chunked", body=CHUNKS, version="1.0")),
    "two Host headers": (400, request("http://ORIGIN/", "Host: evil.example")),
    "no Host (1.1)": (400, b"GET http://ORIGIN/ HTTP/1.1\r\n\r\n"),
    "bad Host": (400, b"GET / HTTP/1.1\r\nHost: ORIGIN/path\r\n\r\n"),
    "userinfo in URL": (400, b"GET http://user:pw@ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "empty port": (400, b"GET http://127.0.0.1:/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "port 65536": (400, b"GET http://127.0.0.1:65536/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "empty host": (400, b"GET http:///path HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "scheme ftp": (400, b"GET ftp://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "CONNECT without port": (400, b"CONNECT example.com HTTP/1.1\r\nHost: example.com\r\n\r\n"),
    "Connection names Content-Length": (400, post("Connection: content-length", "Content-Length: 5", body=b"hello")),
    "Connection names Host": (400, request("http://ORIGIN/", "Connection: host")),
    "header 100 KB": (431, request("http://ORIGIN/", "X-Big: " + "a" * 100_000)),
    "101 headers": (431, request("http://ORIGIN/", *(f"X-{n}: 1" for n in range(100)))),
    "URL 100 KB": (414, b"GET http://ORIGIN/" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "lowercase method": (400, b"get http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "HTTP/2.0": (505, b"GET http://ORIGIN/ HTTP/2.0\r\nHost: ORIGIN\r\n\r\n"),
    "HTTP/0.9": (400, b"GET /\r\n\r\n"),
    "two spaces": (400, b"GET  http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"),
    "TLS to a plain port": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
}


@pytest.mark.parametrize("row", REFUSED)
async def test_what_two_receivers_could_read_differently_is_refused_before_a_byte_reaches_the_origin(row: str) -> None:
    status, data = REFUSED[row]
    memory = Memory()
    async with origin() as there, proxy(recorder=memory) as engine, wire(engine) as line:
        host = there.authority.encode()
        await line.send((data + SECOND).replace(b"ORIGIN", host))
        answer = await line.rest()
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer
        assert status_lines(answer) == 1
        assert b"Connection: close" in answer
        assert there.connections == 0 and there.received == b""
        flow = await memory.flow()
        assert (flow.event, flow.status) == ("bad_request", status)


@pytest.mark.parametrize("row", [name for name in REFUSED if name.startswith("chunk")])
async def test_a_bad_chunk_that_comes_later_ends_the_request_unfinished(row: str) -> None:
    data = REFUSED[row][1]
    async with origin() as there, proxy() as engine, wire(engine) as line:
        head, _, body = data.replace(b"ORIGIN", there.authority.encode()).partition(b"\r\n\r\n")
        await line.send(head + b"\r\n\r\n")
        for byte in body:
            await line.send(bytes((byte,)))
        answer = await line.rest()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert status_lines(answer) == 1
        assert there.requests == []


async def passes(data: bytes, *statuses: int, is_open: bool = True) -> Origin:
    """Send the row; the statuses come back in order, and the connection then is open or ends."""
    async with origin() as there, proxy() as engine, wire(engine) as line:
        await line.send(data.replace(b"ORIGIN", there.authority.encode()))
        for status in statuses:
            assert (await line.reply()).status == status
        if is_open:
            assert await line.is_open(there.url("/again"))
            assert there.requests.pop().head.startswith(b"GET /again ")
        else:
            assert await line.rest() == b""
        return there


async def test_plain_get_becomes_origin_form_and_keeps_the_connection() -> None:
    seen = (await passes(request("http://ORIGIN/a?b=1", "X-Case: Kept"), 200)).requests
    assert [one.head.partition(b"\r\n")[0] for one in seen] == [b"GET /a?b=1 HTTP/1.1"]
    assert b"X-Case: Kept" in seen[0].head


async def test_origin_form_goes_where_host_says() -> None:
    seen = (await passes(b"GET /x HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 200)).requests
    assert seen[0].head.startswith(b"GET /x HTTP/1.1\r\n")


async def test_chunked_with_trailers_arrives_byte_for_byte() -> None:
    body = b"5;name=value\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"
    seen = (await passes(post("Transfer-Encoding: chunked", "Trailer: X-Sum", body=body), 200)).requests
    assert seen[0].header("trailer") == "X-Sum"
    assert b"X-Sum: 1\r\n" in seen[0].body


async def test_http_1_0_get_is_answered_and_closed() -> None:
    data = b"GET http://ORIGIN/ HTTP/1.0\r\n\r\n"
    seen = (await passes(data, 200, is_open=False)).requests
    assert seen[0].head.startswith(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:")


async def test_http_1_0_with_keep_alive_stays_open() -> None:
    await passes(request("http://ORIGIN/", "Connection: keep-alive", version="1.0"), 200)


async def test_host_follows_the_target_and_not_the_header() -> None:
    there = await passes(b"GET http://ORIGIN/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200)
    assert b"evil" not in there.requests[0].head
    assert there.requests[0].header("host") == there.authority


async def test_headers_named_by_connection_stay_on_the_hop() -> None:
    data = request("http://ORIGIN/", "Connection: X-Secret, keep-alive", "X-Secret: 1", "X-Open: 2")
    seen = (await passes(data, 200)).requests[0]
    assert seen.header("x-secret") is None and seen.header("connection") is None
    assert seen.header("x-open") == "2"


async def test_proxy_authorization_and_proxy_connection_never_leave() -> None:
    data = request(
        "http://ORIGIN/", "Proxy-Authorization: Basic c2VjcmV0", "Proxy-Connection: keep-alive", "Keep-Alive: 5",
        "TE: gzip", "Upgrade: h2c", "HTTP2-Settings: AAMA", "Connection: Upgrade, HTTP2-Settings",
    )  # fmt: skip
    head = (await passes(data, 200)).requests[0].head
    assert [line.split(b":")[0] for line in head.split(b"\r\n")[1:-2]] == [b"Host"]


async def test_te_trailers_is_kept() -> None:
    seen = (await passes(request("http://ORIGIN/", "TE: trailers", "Connection: TE"), 200)).requests[0]
    assert seen.header("te") == "trailers"


async def test_pipelined_requests_are_answered_in_order() -> None:
    data = request("http://ORIGIN/1") + request("http://ORIGIN/2") + request("http://ORIGIN/3")
    seen = (await passes(data, 200, 200, 200)).requests
    assert [one.head[:6] for one in seen] == [b"GET /1", b"GET /2", b"GET /3"]


async def test_get_with_a_body_passes_it_on() -> None:
    data = request("http://ORIGIN/", "Content-Length: 5", body=b"hello")
    assert (await passes(data, 200)).requests[0].body == b"hello"


async def test_url_of_40_kb_passes() -> None:
    seen = (await passes(request("http://ORIGIN/" + "a" * 40_000), 200)).requests
    assert len(seen[0].head) > 40_000


@pytest.mark.parametrize("method", ["BREW", "PROPFIND", "M-SEARCH", "X"])
async def test_unknown_method_passes(method: str) -> None:
    data = request("http://ORIGIN/", "Content-Length: 2", method=method, body=b"hi")
    seen = (await passes(data, 200)).requests[0]
    assert seen.head.startswith(method.encode() + b" / ") and seen.body == b"hi"


async def test_options_star_passes() -> None:
    seen = (await passes(b"OPTIONS * HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 200)).requests
    assert seen[0].head.startswith(b"OPTIONS * HTTP/1.1")


async def test_expect_100_continue_is_relayed_from_the_origin() -> None:
    async def handle(line: Line) -> None:
        seen = await line.head()
        assert seen is not None and seen.header("expect") == "100-continue"
        await line.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        await line.body(seen)
        line.origin.requests.append(seen)
        await line.say(OK)

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        head = post("Expect: 100-continue", "Content-Length: 5").replace(b"ORIGIN", there.authority.encode())
        await line.send(head)
        assert (await line.reply()).status == 100
        await line.send(b"hello")
        assert (await line.reply()).status == 200
        assert there.requests[0].body == b"hello"


# Responses. 502 means that nothing of the response was passed on, and that the origin's connection was dropped.

BAD_RESPONSES = {
    "resp CL+TE": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "resp dup CL": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "resp bad status line": b"HELLO 200 OK\r\n\r\n",
    "resp status 2000": b"HTTP/1.1 2000 OK\r\n\r\n",
    "resp header injection NUL": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    "resp TE xchunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
    "resp TE in 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "resp bare LF": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "resp obs-fold": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "resp bad chunk at once": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "resp 101 unasked": b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "resp nothing": b"",
    "resp head too large": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("row", BAD_RESPONSES)
async def test_a_malformed_response_becomes_502_and_the_client_goes_on(row: str) -> None:
    memory = Memory()
    bad = origin(answering(BAD_RESPONSES[row], closes=True))
    async with bad as there, origin() as good, proxy(recorder=memory) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 502
        flow = await memory.flow()
        assert (flow.event, flow.status) == ("upstream_error", 502) and flow.error
        assert await line.is_open(good.url())


async def test_resp_close_delimited_passes_and_closes() -> None:
    async with origin(answering(b"HTTP/1.1 200 OK\r\n\r\nall of it", closes=True)) as there:
        async with proxy() as engine, wire(engine) as line:
            reply = await line.get(there.url())
            assert (reply.status, reply.body, reply.header("connection")) == (200, b"all of it", "close")


@pytest.mark.parametrize(
    ("row", "data"),
    [
        ("resp truncated CL", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"),
        ("resp truncated chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        ("resp chunked, bad later", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello|XX0\r\n\r\n"),
    ],
)
async def test_a_truncated_response_ends_short_and_never_brings_a_second_status(row: str, data: bytes) -> None:
    memory = Memory()
    go_on = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        first, _, second = data.partition(b"|")
        await line.say(first)
        await go_on.wait()
        await line.say(second)

    async with origin(handle) as there, proxy(recorder=memory) as engine, wire(engine) as line:
        await line.send(request(there.url()))
        start = await line.reader.readuntil(b"hello")
        go_on.set()
        answer = start + await line.rest()
        assert status_lines(answer) == 1
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert not answer.endswith(b"0\r\n\r\n")
        flow = await memory.flow()
        assert flow.error and flow.response_body.outcome == "error" and flow.event == "upstream_error"


async def test_a_truncated_chunked_response_resets_a_client_of_http_1_0() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    async with origin(answering(data, closes=True)) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url(), version="1.0"))
        with pytest.raises(ConnectionResetError):
            await line.rest()


async def test_resp_103_then_200_delivers_both() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    async with origin(answering(early + OK)) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url()))
        first = await line.reply()
        assert (first.status, first.header("link")) == (103, "</a.css>")
        assert (await line.reply()).body == b"ok"
        await line.send(request(there.url(), version="1.0"))
        assert (await line.reply()).status == 200  # a client of HTTP/1.0 knows no 1xx


async def test_resp_trailers_arrive_byte_for_byte() -> None:
    data = b"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"
    memory = Memory()
    async with origin(answering(data)) as there, proxy(recorder=memory) as engine, wire(engine) as line:
        reply = await line.get(there.url())
        assert (reply.body, reply.trailers, reply.header("trailer")) == (b"hello", b"X-Sum: 1\r\n", "X-Sum")
        assert (await memory.flow()).response_body.trailers == [(b"X-Sum", b"1")]
        assert await line.is_open(there.url())


@pytest.mark.parametrize("status", [204, 304])
async def test_resp_without_a_body_by_its_status_passes_none(status: int) -> None:
    data = b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\nhello" % status
    async with origin(answering(data)) as there, origin() as good, proxy() as engine, wire(engine) as line:
        reply = await line.get(there.url())
        assert reply.status == status
        assert (reply.header("content-length") is None) == (status == 204)
        assert await line.is_open(good.url())  # not a byte of the body was passed on


async def test_resp_head_with_content_length_has_no_body() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    async with origin(answering(data, OK)) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url(), method="HEAD"))
        assert (await line.reply("HEAD")).header("content-length") == "5"
        assert await line.is_open(there.url())
        assert there.connections == 1


async def test_hop_headers_of_a_response_stay_on_its_hop() -> None:
    data = (
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
        b"Proxy-Authenticate: Basic\r\nX-End: 2\r\nContent-Length: 0\r\n\r\n"
    )
    async with origin(answering(data)) as there, proxy() as engine, wire(engine) as line:
        reply = await line.get(there.url())
        assert reply.head == b"HTTP/1.1 200 OK\r\nX-End: 2\r\nContent-Length: 0\r\n\r\n"
