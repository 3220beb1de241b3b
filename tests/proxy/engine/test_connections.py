"""Connections on both sides: reuse, retry, order, half-close, early responses, limits in time."""

from __future__ import annotations

import asyncio
import gc
import socket
from dataclasses import replace

import pytest

from dari.proxy.engine.client import ClientConnection
from dari.proxy.engine.exchange import Exchange
from tests.support.origins.origin import OK, Handler, Line, answering, origin
from tests.support.proxy_engine import FAST, Memory, proxy, request, wire
from tests.support.waiting import until


async def test_one_connection_to_the_origin_serves_many_clients_in_turn() -> None:
    async with origin() as there, proxy() as engine:
        for _ in range(3):
            async with wire(engine) as line:
                for _ in range(4):
                    assert (await line.get(there.url())).status == 200
        assert (there.connections, len(there.requests)) == (1, 12)


async def test_a_request_that_is_over_is_freed_at_once_and_not_left_to_the_garbage_collector() -> None:
    async with origin() as there, proxy() as engine, wire(engine) as line:
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                assert (await line.get(there.url())).status == 200
            left = sum(type(one) is Exchange for one in gc.get_objects())
        finally:
            gc.enable()
        # The last one may still be on its way out of the frames that wrote its end.
        assert left <= 1


async def test_a_response_that_says_close_is_not_reused() -> None:
    data = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    async with origin(answering(data, closes=True)) as there, proxy() as engine, wire(engine) as line:
        for _ in range(3):
            reply = await line.get(there.url())
            assert (reply.status, reply.header("connection")) == (200, None)
        assert there.connections == 3


async def test_bytes_behind_a_response_never_become_the_next_one() -> None:
    evil = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    async with origin(answering(OK + evil, OK)) as there, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url())).body == b"ok"
        assert (await line.get(there.url())).body == b"ok"
        assert there.connections == 2


async def test_bytes_on_an_idle_connection_never_become_the_next_response() -> None:
    sent = asyncio.Event()

    async def handle(line: Line) -> None:
        while await line.request() is not None:
            await line.say(OK)
            if line.origin.connections == 1:
                await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
                assert await line.reader.read() == b""  # the proxy hangs up
                sent.set()
                return

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url())).body == b"ok"
        await sent.wait()
        assert (await line.get(there.url())).body == b"ok"


def closing_after_first() -> Handler:
    """An origin whose first connection is closed at the moment its second request arrives."""

    async def handle(line: Line) -> None:
        is_first = line.origin.connections == 1
        await line.request()
        await line.say(OK)
        if is_first:
            await line.head()
            return
        while await line.request() is not None:
            await line.say(OK)

    return handle


async def test_a_stale_connection_is_retried_once_on_a_new_one() -> None:
    memory = Memory()
    handle = closing_after_first()
    async with origin(handle) as there, proxy(recorder=memory) as engine, wire(engine) as line:
        assert (await line.get(there.url("/1"))).status == 200
        assert (await line.get(there.url("/2"))).status == 200
        assert there.connections == 2
        assert (await memory.flow(2)).error is None


async def test_a_request_that_changes_something_is_not_sent_twice() -> None:
    handle = closing_after_first()
    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url("/1"))).status == 200
        await line.send(request(there.url("/2"), "Content-Length: 2", method="POST", body=b"hi"))
        assert (await line.reply()).status == 502
        assert there.connections == 1


async def test_an_origin_that_never_answers_is_not_retried_for_ever() -> None:
    async def handle(line: Line) -> None:
        if line.origin.connections == 1 and await line.request() is not None:
            await line.say(OK)
        await line.head()

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 200
        assert (await line.get(there.url())).status == 502
        assert there.connections == 2


async def test_a_thousand_pipelined_requests_come_back_in_order() -> None:
    async def handle(line: Line) -> None:
        while (seen := await line.request()) is not None:
            path = seen.head.split(b" ")[1]
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        sending = asyncio.create_task(line.send(*(request(there.url(f"/{n}")) for n in range(1000))))
        for n in range(1000):
            assert (await line.reply()).body == f"/{n}".encode()
        await sending


async def test_pipelined_local_answers_do_not_recurse() -> None:
    async with proxy() as engine, wire(engine) as line:
        sending = asyncio.create_task(line.send(request("http://proxy.crab/ca.pem") * 3000))
        for _ in range(3000):
            assert (await line.reply()).status == 503
        await sending


async def test_a_client_that_ends_its_direction_still_gets_its_answer() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        asked.set()
        await go_on.wait()
        await line.say(OK)

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url()))
        line.writer.write_eof()
        await asked.wait()
        go_on.set()
        answer = await line.rest()
        assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"ok")


async def test_an_early_response_arrives_while_the_upload_goes_on() -> None:
    async def handle(line: Line) -> None:
        seen = await line.head()
        assert seen is not None
        await line.say(OK)
        await line.body(seen)
        line.origin.requests.append(seen)
        while await line.request() is not None:
            await line.say(OK)

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url(), "Content-Length: 10", method="POST"))
        assert (await line.reply()).body == b"ok"
        await line.send(b"helloworld")
        assert await line.is_open(there.url())
        assert there.requests[0].body == b"helloworld"
        assert there.connections == 1


async def test_an_early_refusal_is_delivered_and_the_rest_of_the_upload_dropped() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno!"

    async def handle(line: Line) -> None:
        await line.head()
        await line.say(refusal)

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url(), "Content-Length: 10000000", method="POST"))
        reply = await line.reply()
        assert (reply.status, reply.body, reply.header("connection")) == (413, b"no!", "close")
        await line.send(b"x" * 1_000_000)  # no reset destroys the answer
        line.writer.write_eof()
        assert await line.rest() == b""


async def test_a_refused_expectation_closes_because_the_body_may_or_may_not_come() -> None:
    data = b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"

    async def handle(line: Line) -> None:
        await line.head()
        await line.say(data)

    async with origin(handle) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url(), "Expect: 100-continue", "Content-Length: 5", method="POST"))
        reply = await line.reply()
        assert (reply.status, reply.header("connection")) == (417, "close")


async def test_a_silent_origin_does_not_keep_an_expecting_client_waiting() -> None:
    async with origin() as there, proxy(replace(FAST, continue_s=0.01)) as engine, wire(engine) as line:
        await line.send(request(there.url(), "Expect: 100-continue", "Content-Length: 5", method="POST"))
        assert (await line.reply()).status == 100
        await line.send(b"hello")
        assert (await line.reply()).status == 200
        assert there.requests[0].body == b"hello"


async def test_an_http_1_0_client_gets_a_chunked_body_without_chunks() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\nX: 1\r\n\r\n"
    async with origin(answering(data)) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url(), "Connection: keep-alive", version="1.0"))
        reply = await line.reply()
        assert reply.header("transfer-encoding") is None and reply.header("connection") == "close"
        assert reply.body == b"hello world"


async def test_an_http_1_0_origin_is_spoken_to_and_translated() -> None:
    data = b"HTTP/1.0 200 OK\r\n\r\nold"
    async with origin(answering(data, closes=True)) as there, proxy() as engine, wire(engine) as line:
        reply = await line.get(there.url())
        assert reply.head.startswith(b"HTTP/1.1 200 OK") and reply.body == b"old"


async def test_no_response_in_time_is_504_and_recorded() -> None:
    memory = Memory()

    async def handle(line: Line) -> None:
        await line.request()
        await line.reader.read()

    config = replace(FAST, response_timeout_s=0.4)  # long enough for the one that answers, on a busy machine
    async with origin(handle) as there, origin() as good, proxy(config, memory) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 504
        flow = await memory.flow()
        assert (flow.event, flow.status) == ("upstream_error", 504)
        assert await line.is_open(good.url())


async def test_a_head_that_never_ends_is_408() -> None:
    async with proxy(replace(FAST, request_timeout_s=0.05)) as engine, wire(engine) as line:
        await line.send(b"GET http://a/ HT")
        assert (await line.rest()).startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_stops_arriving_is_408() -> None:
    async with origin() as there, proxy(replace(FAST, request_timeout_s=0.05)) as engine, wire(engine) as line:
        await line.send(request(there.url(), "Content-Length: 10", method="POST", body=b"hel"))
        await line.send(b"l")
        assert (await line.rest()).startswith(b"HTTP/1.1 408 ")
        assert there.requests == []


async def test_an_idle_client_is_closed() -> None:
    async with proxy(replace(FAST, idle_timeout_s=0.03)) as engine, wire(engine) as line:
        assert await line.rest() == b""


async def test_an_idle_connection_to_the_origin_is_closed() -> None:
    gone = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(OK)
        assert await line.reader.read() == b""
        gone.set()

    async with origin(handle) as there, proxy(replace(FAST, pool_idle_s=0.01)) as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 200
        await gone.wait()


async def test_a_client_that_vanishes_takes_its_request_with_it() -> None:
    memory = Memory()
    asked, gone = asyncio.Event(), asyncio.Event()

    async def handle(line: Line) -> None:
        await line.head()
        asked.set()
        try:
            await line.reader.read()
        finally:
            gone.set()

    async with origin(handle) as there, proxy(recorder=memory) as engine:
        async with wire(engine) as line:
            await line.send(request(there.url(), "Content-Length: 10", method="POST"))
            await asked.wait()
        await gone.wait()
        flow = await memory.flow()
        assert flow.error is not None and "client closed" in flow.error


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_a_name_that_resolves_to_both_families_reaches_the_one_that_listens(name: str) -> None:
    async with origin() as there, proxy() as engine, wire(engine) as line:
        assert (await line.get(f"http://{name}:{there.port}/")).status == 200


async def test_nobody_listening_is_502_with_the_reason() -> None:
    async with origin() as there:
        url = there.url()
    async with proxy() as engine, wire(engine) as line:
        reply = await line.get(url)
        assert reply.status == 502 and b"refused" in reply.body.lower()


async def test_an_unknown_name_is_502() -> None:
    async with proxy() as engine, wire(engine) as line:
        assert (await line.get("http://no-such-host.invalid/")).status == 502


@pytest.mark.parametrize(
    ("bound", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "[::ffff:127.0.0.1]"),
        ("127.0.0.1", "0.0.0.0"),
        ("0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.2"),
        ("0.0.0.0", "[::ffff:127.0.0.3]"),
    ],
)
async def test_a_request_to_the_proxy_itself_is_508(bound: str, host: str) -> None:
    memory = Memory()
    async with proxy(replace(FAST, host=bound), memory) as engine:
        assert engine.address is not None
        port = engine.address[1]
        async with wire(engine, ("127.0.0.1", port)) as line:
            assert (await line.get(f"http://{host}:{port}/")).status == 508
            await line.send(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            assert (await line.reply()).status == 508
        assert len(memory.flows) == 2


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Le"])
async def test_an_origin_that_resets_before_its_response_is_502(sent: bytes) -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(sent)
        line.reset()

    async with origin(handle) as there, origin() as good, proxy() as engine, wire(engine) as line:
        assert (await line.get(there.url())).status == 502
        assert await line.is_open(good.url())


async def test_a_body_may_stall_for_longer_than_any_limit_on_heads() -> None:
    ticks = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
        await ticks.wait()
        await line.say(b"k")

    # Long enough for the heads on a busy machine.
    config = replace(FAST, response_timeout_s=0.4, request_timeout_s=0.4, idle_timeout_s=0.4)
    async with origin(handle) as there, proxy(config) as engine, wire(engine) as line:
        await line.send(request(there.url()))
        await line.reader.readuntil(b"\r\n\r\no")
        async with wire(engine) as idle:
            assert await idle.rest() == b""  # every limit on the first connection has passed too: it is older
        ticks.set()
        assert await line.reader.readexactly(1) == b"k"


async def test_a_head_that_drips_gets_no_more_time_for_each_drop() -> None:
    config = replace(FAST, request_timeout_s=0.2, tick_s=0.01)
    async with proxy(config) as engine, wire(engine) as line, wire(engine) as clock:
        await line.send(b"GET http://a/ HTTP/1.1\r\nX: ")
        answer = asyncio.create_task(line.rest())
        while not answer.done():
            assert (await clock.get("http://proxy.crab/")).status == 503
            try:
                await line.send(b"x")
            except ConnectionError:
                break
        assert (await answer).startswith(b"HTTP/1.1 408 ")


async def test_a_client_that_ended_its_direction_is_probed_for_its_real_end() -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.reader.read()

    async with origin(silent) as there, proxy() as engine, wire(engine) as line:
        await line.send(request(there.url()))
        line.writer.write_eof()
        core = engine._core
        assert core is not None
        await until(lambda: any(isinstance(one, ClientConnection) and one._has_ended for one in core.connections))
        (client,) = (one for one in core.connections if isinstance(one, ClientConnection))
        sock = client.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
