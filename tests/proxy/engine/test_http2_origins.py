"""Origins that speak HTTP/2: one connection for many streams, trailers, resets, goodbyes, and clients of HTTP/1.1."""

# ruff: noqa: SIM117 - nested `with` blocks say which part lives inside which

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import GoAwayFrame

from dari.proxy.ca import CertificateAuthority
from tests.support.origins.h2_peer import H2Peer, Side, answers_ok, h2_origin
from tests.support.origins.origin import origin
from tests.support.origins.relay import relay
from tests.support.proxy_engine import FAST, Memory, tunnel
from tests.support.proxy_engine_h2 import NEW_TLS, OLD_TLS, decrypting, h2_client, trusting


async def test_many_streams_share_one_connection_to_the_origin(tmp_path: Path) -> None:
    memory = Memory()
    async with h2_origin(tls=NEW_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client, h2_client(engine, there.port) as other:
            asked = [
                (one, one.ask(there.authority, f"/{number}", method="POST", ends=False))
                for number in range(20)
                for one in (client, other)
            ]
            for one, side in asked:
                await one.say(side.number, b"x" * 1000, ends=True)
            for one, side in asked:
                answer = await one.answer(side)
                assert (answer.status, answer.body) == (200, b"ok")
        assert len(there.peers) == 1 and len(there.requests) == 40
        assert all(side.body == b"x" * 1000 for side in there.requests)
        assert dict(there.requests[0].headers)[b":authority"] == there.authority.encode()
        flow = await memory.flow(40)
        assert flow.tls is not None and flow.tls.upstream_alpn == "h2"
        assert flow.request_body.size_bytes == 1000
        assert all(name not in (b"transfer-encoding", b"host") for name, _ in flow.request_headers)


async def test_trailers_pass_both_ways(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        await peer.answer(side)
        peer.head(side.number, 200, (b"content-type", b"application/grpc"))
        await peer.say(side.number, b"body")
        peer.trail(side.number, (b"grpc-status", b"0"), (b"grpc-message", b"fine"))

    memory = Memory()
    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask(there.authority, "/", (b"te", b"trailers"), method="POST", ends=False)
            await client.say(side.number, b"abc")
            client.trail(side.number, (b"x-mine", b"1"))
            answer = await client.answer(side)
            assert (answer.body, answer.trailers) == (b"body", [(b"grpc-status", b"0"), (b"grpc-message", b"fine")])
            assert answer.headers == [(b":status", b"200"), (b"content-type", b"application/grpc")]
        seen = there.requests[0]
        assert (seen.body, seen.trailers, seen.header("te")) == (b"abc", [(b"x-mine", b"1")], b"trailers")
        assert (await memory.flow()).response_headers == [(b"content-type", b"application/grpc")]


async def test_a_response_of_a_head_alone_stays_one(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        peer.head(side.number, 200, (b"grpc-status", b"12"), ends=True)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask(there.authority))
            assert answer.headers == [(b":status", b"200"), (b"grpc-status", b"12")] and answer.is_ended


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 304), ("GET", 204)])
async def test_a_length_without_a_body_is_no_mistake(tmp_path: Path, method: str, status: int) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        peer.head(side.number, status, (b"content-length", b"5"), ends=True)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            for _ in range(2):
                answer = await client.answer(client.ask(there.authority, method=method))
                assert (answer.status, answer.is_ended, answer.body) == (status, True, b"")
        assert len(there.peers) == 1


async def test_a_body_of_the_wrong_length_ends_its_stream_only(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        if side.header(":path") == b"/bad":
            peer.head(side.number, 200, (b"content-length", b"5"))
            await peer.say(side.number, b"123", ends=True)
        else:
            await answers_ok(peer, side)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            bad = await client.answer(client.ask(there.authority, "/bad"))
            assert bad.reset is ErrorCodes.INTERNAL_ERROR
            assert (await client.answer(client.ask(there.authority))).body == b"ok"
        assert len(there.peers) == 1


async def test_early_heads_come_before_the_response(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        peer.head(side.number, 103, (b"link", b"</a>"))
        await answers_ok(peer, side)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask(there.authority))
            assert answer.early == [[(b":status", b"103"), (b"link", b"</a>")]] and answer.body == b"ok"


async def test_large_bodies_pass_both_ways(tmp_path: Path) -> None:
    body = bytes(range(250)) * 10_000

    async def handle(peer: H2Peer, side: Side) -> None:
        peer.head(side.number, 200)
        await peer.say(side.number, body, ends=True)
        await peer.answer(side)
        arrived.release()

    arrived = asyncio.Semaphore(0)
    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            asked = [client.ask(there.authority, method="POST", ends=False) for _ in range(3)]
            await asyncio.gather(*(client.say(side.number, body, ends=True) for side in asked))
            for side in asked:
                assert (await client.answer(side)).body == body
                await arrived.acquire()
        assert all(seen.body == body for seen in there.requests)


async def test_a_stalled_stream_holds_up_neither_memory_nor_others(tmp_path: Path) -> None:
    sent = 0

    async def handle(peer: H2Peer, side: Side) -> None:
        nonlocal sent
        if side.header(":path") == b"/small":
            await answers_ok(peer, side)
            return
        peer.head(side.number, 200)
        for _ in range(40):
            await peer.say(side.number, bytes(1 << 18))
            sent += 1
        peer.end(side.number)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            client.wire.increment_flow_control_window(64 << 20)
            large = client.ask(there.authority, "/large")
            client.stalled.add(large.number)
            for _ in range(50):
                assert (await client.answer(client.ask(there.authority, "/small"))).body == b"ok"
            assert sent <= 3
            client.unstall(large.number)
            await client.until(lambda: large.is_ended)
            assert len(large.body) == 40 << 18
        assert len(there.peers) == 1


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_stream_that_the_origin_resets_is_an_error_of_that_stream(tmp_path: Path, is_begun: bool) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        if side.header(":path") == b"/good":
            await answers_ok(peer, side)
            return
        if is_begun:
            peer.head(side.number, 200)
            await peer.say(side.number, b"some")
        peer.reset(side.number, ErrorCodes.INTERNAL_ERROR)

    memory = Memory()
    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask(there.authority))
            if is_begun:
                assert answer.reset is ErrorCodes.INTERNAL_ERROR
            else:
                assert answer.status == 502 and b"INTERNAL_ERROR" in answer.body
            assert (await memory.flow()).error
            assert (await client.answer(client.ask(there.authority, "/good"))).body == b"ok"
        assert len(there.peers) == 1


async def test_a_stream_that_the_client_resets_is_reset_at_the_origin(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def handle(peer: H2Peer, side: Side) -> None:
        if side.header(":path") == b"/good":
            await answers_ok(peer, side)
            return
        peer.head(side.number, 200)
        await peer.until(lambda: side.reset is not None)
        assert side.reset is ErrorCodes.CANCEL
        gone.set()

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask(there.authority, method="POST", ends=False)
            await client.until(lambda: side.headers)
            client.reset(side.number)
            await gone.wait()
            assert (await client.answer(client.ask(there.authority, "/good"))).body == b"ok"
        assert len(there.peers) == 1


async def test_a_stream_that_the_origin_refused_is_asked_again_whatever_it_is(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        await peer.until(lambda: side.is_ended)
        if len(there.requests) == 1:
            peer.reset(side.number, ErrorCodes.REFUSED_STREAM)
        else:
            await answers_ok(peer, side)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            side = client.ask(there.authority, method="POST", ends=False)
            await client.say(side.number, b"once", ends=True)
            assert (await client.answer(side)).body == b"ok"
        assert [seen.body for seen in there.requests] == [b"once", b"once"]


async def test_what_a_goodbye_leaves_out_is_asked_on_another_connection(tmp_path: Path) -> None:
    """The streams up to the one it names go on to their ends on the old one."""
    may_end = asyncio.Event()

    async def handle(peer: H2Peer, side: Side) -> None:
        if side.header(":path") == b"/first":
            peer.head(side.number, 200)
            await peer.say(side.number, b"half, ")
            await may_end.wait()
            await peer.say(side.number, b"whole", ends=True)
        elif len(there.peers) == 1:
            frame = GoAwayFrame(0, last_stream_id=1)
            peer.writer.write(frame.serialize())
        else:
            await answers_ok(peer, side)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            first = client.ask(there.authority, "/first")
            await client.until(lambda: first.body)
            second = client.ask(there.authority, "/second", method="POST")
            assert (await client.answer(second)).body == b"ok"
            may_end.set()
            assert (await client.answer(first)).body == b"half, whole"
        assert len(there.peers) == 2
        await there.peers[0].closed()


async def test_an_origin_that_says_goodbye_between_two_requests_is_dialled_again(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        await answers_ok(peer, side)
        peer.writer.write(GoAwayFrame(0, last_stream_id=side.number).serialize())

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            for count in (1, 2, 3):
                assert (await client.answer(client.ask(there.authority, method="POST"))).body == b"ok"
                await there.peers[count - 1].closed()


async def test_an_origin_that_vanishes_fails_all_its_streams(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        if len(peer.sides) == 3:
            peer.writer.transport.abort()

    memory = Memory()
    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path, memory) as engine:
        async with h2_client(engine, there.port) as client:
            asked = [client.ask(there.authority, method="POST") for _ in range(3)]
            for side in asked:
                assert (await client.answer(side)).status == 502
        assert len(memory.done) == 3


@pytest.mark.parametrize(
    "fields",
    [
        [(b"x-no-status", b"1")],
        [(b":status", b"20")],
        [(b":status", b"101")],
        [(b":status", b"200"), (b"x", b"a\r\nset-cookie: evil=1")],
        [(b":status", b"200"), (b"Upper", b"1")],
        [(b":status", b"200"), (b"transfer-encoding", b"chunked")],
        [(b":status", b"200"), (b"content-length", b"x")],
        [(b":status", b"200"), (b":path", b"/")],
    ],
)
async def test_a_malformed_response_is_502_for_its_stream(tmp_path: Path, fields: list[tuple[bytes, bytes]]) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        if side.header(":path") == b"/good":
            await answers_ok(peer, side)
            return
        peer.wire.send_headers(side.number, fields, end_stream=fields[0][1] != b"101")
        peer.flush()

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            answer = await client.answer(client.ask(there.authority))
            assert answer.status == 502 and b"malformed" in answer.body
            assert (await client.answer(client.ask(there.authority, "/good"))).body == b"ok"


async def test_an_origin_that_cannot_be_reached_is_dialled_once_for_all(tmp_path: Path) -> None:
    dialled = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dialled
        dialled += 1
        await reader.read(100)
        writer.transport.abort()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with decrypting(tmp_path) as engine:
        async with h2_client(engine, port) as client:
            asked = [client.ask("localhost") for _ in range(20)]
            for side in asked:
                assert (await client.answer(side)).status == 502
    assert dialled <= 2  # both addresses of localhost may be tried
    server.close()
    await server.wait_closed()


async def test_new_settings_make_a_new_connection_and_break_no_stream(tmp_path: Path) -> None:
    may_end = asyncio.Event()

    async def handle(peer: H2Peer, side: Side) -> None:
        if side.header(":path") == b"/long":
            peer.head(side.number, 200)
            await may_end.wait()
            await peer.say(side.number, b"done", ends=True)
        else:
            await answers_ok(peer, side)

    async with h2_origin(handle, NEW_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            long = client.ask(there.authority, "/long")
            await client.until(lambda: long.headers)
            await engine.apply(replace(engine._config, response_timeout_s=29.0))
            assert (await client.answer(client.ask(there.authority))).body == b"ok"
            assert len(there.peers) == 2
            may_end.set()
            assert (await client.answer(long)).body == b"done"
            await there.peers[0].closed()


async def test_an_idle_connection_to_the_origin_is_closed(tmp_path: Path) -> None:
    async with h2_origin(tls=NEW_TLS) as there, decrypting(tmp_path, config=replace(FAST, pool_idle_s=0.1)) as engine:
        async with h2_client(engine, there.port) as client:
            assert (await client.answer(client.ask(there.authority))).body == b"ok"
            await there.peers[0].closed()
            assert there.peers[0].goaway is ErrorCodes.NO_ERROR
            assert (await client.answer(client.ask(there.authority))).body == b"ok"


# Clients of HTTP/1.1.


async def test_a_client_of_http1_is_served_over_http1_where_the_origin_speaks_both(tmp_path: Path) -> None:
    both = CertificateAuthority.generate()
    both.alpn = ["h2", "http/1.1"]
    roots = tmp_path / "both.pem"
    roots.write_bytes(both.pem)
    async with origin(tls=both.context_for("localhost")) as there:
        async with decrypting(tmp_path) as engine:
            await engine.apply(replace(engine._config, ca_file=str(roots)))
            async with tunnel(engine, f"localhost:{there.port}") as line:
                await line.start_tls(trusting("http/1.1"), "localhost")
                await line.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await line.reply()).body == b"ok"


async def test_a_client_of_http1_reaches_an_origin_that_speaks_only_http2(tmp_path: Path) -> None:
    async def handle(peer: H2Peer, side: Side) -> None:
        await peer.answer(side)
        if side.header(":path") == b"/head":
            peer.head(side.number, 200, (b"x-a", b"1"), ends=True)
        elif side.header(":path") == b"/known":
            peer.head(side.number, 200, (b"content-length", b"5"))
            await peer.say(side.number, b"known", ends=True)
        else:
            peer.head(side.number, 200)
            await peer.say(side.number, b"you sent ")
            await peer.say(side.number, bytes(side.body))
            peer.trail(side.number, (b"x-sum", b"7"))

    memory = Memory()
    post = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    async with h2_origin(handle, NEW_TLS) as there, relay(there.port, refuses_http1) as door:
        async with decrypting(tmp_path, memory) as engine:
            async with tunnel(engine, f"localhost:{door.port}") as line:
                await line.start_tls(trusting("http/1.1"), "localhost")
                for _ in range(2):
                    await line.send(post)
                    reply = await line.reply()
                    assert (reply.status, reply.body, reply.trailers) == (200, b"you sent abc", b"x-sum: 7\r\n")
                    await line.send(b"GET /known HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert (await line.reply()).body == b"known"
                    await line.send(b"GET /head HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert (await line.reply()).header("content-length") == "0"
            flow = await memory.flow(6)
            assert (flow.http_version, flow.tls and flow.tls.upstream_alpn) == ("1.1", "h2")
            assert len(there.peers) == 1


def refuses_http1(hello: bytes) -> bytes | None:
    """A fatal no_application_protocol for whoever does not offer h2: what Python's ssl cannot be told to send."""
    return None if b"\x02h2" in hello else b"\x15\x03\x03\x00\x02\x02\x78"


async def test_an_old_origin_is_not_dialled_one_after_another(tmp_path: Path) -> None:
    """Streams that ask at once share one connection of HTTP/2, and get one each of HTTP/1.1."""
    everyone = asyncio.Event()
    count = 0

    async def handle(line: object) -> None:
        nonlocal count
        await line.request()  # type: ignore[attr-defined]
        count += 1
        if count == 10:
            everyone.set()
        await everyone.wait()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")  # type: ignore[attr-defined]

    async with origin(handle, OLD_TLS) as there, decrypting(tmp_path) as engine:
        async with h2_client(engine, there.port) as client:
            asked = [client.ask("localhost") for _ in range(10)]
            for side in asked:
                assert (await client.answer(side)).body == b"ok"
