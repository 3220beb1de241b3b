"""Limits: bodies, heads, duplicate headers, slow clients, clients that do not read, rate."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from dari.transport import http
from tests.support.transports import Rig, open_events, running
from tests.support.waiting import turn_until
from tests.support.wire import HttpWire, call, initialize

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def cramped(rig: Rig, wire: HttpWire) -> HttpWire:
    """The same session on a connection whose client never reads and has next to no buffer for what comes."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", rig.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    rig._writers.append(writer)
    deaf = HttpWire(reader, writer)
    deaf.headers = dict(wire.headers)
    return deaf


async def test_a_body_of_a_known_length_over_the_limit_is_413_before_it_is_sent() -> None:
    async with running() as rig:
        rig.endpoint.most_body_bytes = 1000
        wire = await rig.http()
        wire.writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n")
        reply = await wire.receive()
        assert (reply.status, reply.json()) == (413, {"error": "the body is longer than 1000 bytes"})
        assert reply.headers["connection"] == "close"
        async with asyncio.timeout(4.5):  # less than a client gets for its body
            assert await wire.reader.read() == b""


async def test_the_answer_to_a_body_over_the_limit_can_be_read_by_a_client_that_sends_it_all() -> None:
    async with running() as rig:
        rig.endpoint.most_body_bytes = 1000
        wire = await rig.http()
        reply = await wire.post(b"x" * 5_000_000)
        assert reply.status == 413
        assert await wire.reader.read() == b""


async def test_a_chunked_body_over_the_limit_is_413() -> None:
    async with running() as rig:
        rig.endpoint.most_body_bytes = 1000
        wire = await rig.http()
        wire.writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            wire.writer.write(b"64\r\n" + b"x" * 100 + b"\r\n")
        assert (await wire.receive()).status == 413
        wire.writer.write(b"0\r\n\r\n")
        assert await wire.reader.read() == b""


async def test_a_pipelined_body_over_the_limit_is_answered_in_its_turn() -> None:
    async with running() as rig:
        rig.endpoint.most_body_bytes = 1000
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 1)).encode())
        wire.writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.writer.write(b"5dc\r\n" + b"x" * 1500 + b"\r\n0\r\n\r\n")
        await rig.tools.started.wait()
        rig.tools.release.set()
        assert [(await wire.receive()).status for _ in range(2)] == [200, 413]


async def test_a_body_of_exactly_the_limit_is_taken() -> None:
    async with running() as rig:
        body = json.dumps(initialize()).encode()
        rig.endpoint.most_body_bytes = len(body)
        assert (await (await rig.http()).post(body)).status == 200


@pytest.mark.parametrize("path", ["/mcp", "/healthz"])
async def test_a_head_over_the_limit_is_431(path: str) -> None:
    async with running() as rig:
        wire = await rig.http()
        reply = await wire.request("GET", path, headers={"X-Long": "x" * 70_000})
        assert (reply.status, reply.headers["connection"]) == (431, "close")
        assert await wire.reader.read() == b""


async def test_a_head_without_end_is_431() -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.writer.write(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        for _ in range(100):
            wire.writer.write(b"x" * 10_000)
            await asyncio.sleep(0)
        assert (await wire.receive()).status == 431
        rig.connections[0].tick(later(11))
        assert await wire.reader.read() == b""


async def test_more_than_a_hundred_headers_are_431() -> None:
    async with running() as rig:
        wire = await rig.http()
        reply = await wire.request("GET", "/mcp", headers={f"X-{n}": "1" for n in range(101)})
        assert (reply.status, reply.json()) == (431, {"error": "more than 100 headers"})


async def test_a_head_that_begins_behind_a_big_body_is_not_too_long() -> None:
    async with running() as rig:
        wire = await rig.session()
        body = json.dumps(call("demo_size", 1, text="x" * 150_000)).encode()
        wire.send("POST", "/mcp", body)
        wire.writer.write(b"GET /healthz HTTP/1.1\r\nHo")
        assert (await wire.receive()).json()["id"] == 1
        wire.writer.write(b"st: localhost\r\n\r\n")
        assert (await wire.receive()).status == 200


@pytest.mark.parametrize("name", ["Authorization", "Host", "Origin", "Content-Type", "Mcp-Session-Id", "Mcp-Param-X"])
async def test_a_header_that_decides_something_may_come_once(name: str) -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.headers[name] = "localhost"
        wire.headers[name.lower()] = "other"
        reply = await wire.post(PING)
        assert (reply.status, reply.json()) == (400, {"error": f"header {name.lower()} appears more than once"})


async def test_two_accept_headers_count_as_one_list() -> None:
    async with running() as rig:
        wire = await rig.session()
        wire.headers["accept"] = "application/json"
        wire.headers["Accept"] = "text/event-stream"
        message = call("demo_count", 1, to=1)
        message["params"]["_meta"] = {"progressToken": 1}
        for _ in range(2):
            assert (await wire.post(message)).headers["content-type"] == "text/event-stream"
            wire.headers = dict(reversed(wire.headers.items()))


@pytest.mark.parametrize("sent", [b"", b"GET /mcp HT", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: 1"])
async def test_a_head_that_does_not_arrive_in_ten_seconds_ends_the_connection(sent: bytes) -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.writer.write(sent)
        await turn_until(lambda: rig.connections and (not sent or rig.connections[0]._in_head))
        connection = rig.connections[0]
        connection.tick(later(9))
        assert not connection.transport.is_closing()
        connection.tick(later(11))
        assert await wire.reader.read() == b""


async def test_a_head_that_trickles_does_not_gain_time() -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.writer.write(b"GET /mcp HTTP/1.1\r\n")
        await turn_until(lambda: rig.connections and rig.connections[0]._in_head)
        connection, begun_s = rig.connections[0], later(0)
        for _ in range(5):
            wire.writer.write(b"X-A: 1\r\n")
            await asyncio.sleep(0)
        connection.tick(begun_s + 11)
        assert connection.transport.is_closing()


async def test_a_body_that_does_not_arrive_in_a_minute_ends_the_connection() -> None:
    async with running() as rig:
        wire = await rig.session()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        wire.writer.write(f"POST /mcp HTTP/1.1\r\n{head}Content-Length: 100\r\n\r\n".encode() + b"{")
        connection = rig.connections[0]
        await turn_until(lambda: len(rig.endpoint.open) == 1)
        connection.tick(later(59))
        assert not connection.transport.is_closing()
        connection.tick(later(61))
        assert await wire.reader.read() == b""
        await turn_until(lambda: rig.counts()["exchanges"] == 0)


async def test_an_idle_connection_is_ended_and_a_running_call_is_not() -> None:
    async with running() as rig:
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 1)).encode())
        await rig.tools.started.wait()
        connection = rig.connections[0]
        connection.tick(later(3600))
        rig.tools.release.set()
        assert (await wire.receive()).json()["id"] == 1
        connection.tick(later(74))
        assert not connection.transport.is_closing()
        connection.tick(later(76))
        assert await wire.reader.read() == b""


async def test_a_client_that_does_not_read_its_events_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_UNREAD_BYTES", 1_000_000)
    async with running() as rig:
        wire = await rig.session()
        deaf = await cramped(rig, wire)
        deaf.send("GET", "/mcp")
        await turn_until(lambda: len(rig.connections) == 2 and rig.hub.sessions._by_id and rig.endpoint.open)
        session = next(iter(rig.hub.sessions._by_id.values()))
        stream = session.streams.standing()
        sent = 0
        while len(rig.connections) == 2:
            stream.emit(b'"' + b"x" * 100_000 + b'"')
            sent += 1
            await asyncio.sleep(0)
        assert sent < 200
        assert stream.sink is None
        assert stream.size_bytes <= 4 * 1024 * 1024


async def test_a_client_that_reads_nothing_for_a_minute_is_cut_off() -> None:
    async with running() as rig:
        wire = await rig.session()
        deaf = await cramped(rig, wire)
        deaf.send("POST", "/mcp", json.dumps(call("demo_echo", 1, text="x" * 4_000_000)).encode())
        await deaf.writer.drain()
        await turn_until(lambda: any(c.flow.write_paused for c in rig.connections))
        connection = next(c for c in rig.connections if c.flow.write_paused)
        connection.tick(later(0))
        connection.tick(later(59))
        assert connection in rig.connections
        connection.tick(later(61))
        await turn_until(lambda: connection not in rig.connections)


async def test_a_client_that_asks_and_asks_and_does_not_read_is_not_answered_into_memory() -> None:
    async with running() as rig:
        wire = await rig.session()
        deaf = await cramped(rig, wire)
        request = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
        await turn_until(lambda: len(rig.connections) == 2)
        other = next(c for c in rig.connections if c.client == deaf.writer.get_extra_info("sockname"))
        for _ in range(3000):
            deaf.send("POST", "/mcp", request)
            await asyncio.sleep(0)
        await turn_until(lambda: other.flow.write_paused and other.flow.read_paused)
        assert other.transport.get_write_buffer_size() < 500_000
        assert (await wire.post(PING)).status == 200


async def test_one_result_bigger_than_the_buffer_for_events_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_UNREAD_BYTES", 100_000)
    async with running() as rig:
        wire = await rig.session()
        deaf = await cramped(rig, wire)
        message = call("demo_echo", 1, text="x" * 500_000, times=9)
        message["params"]["_meta"] = {"progressToken": 1}
        deaf.send("POST", "/mcp", json.dumps(message).encode())
        await turn_until(lambda: len(rig.endpoint.open) == 1 and len(rig.server.calls) == 1)
        exchange = next(iter(rig.endpoint.open))
        exchange.open_events()
        status, _ = await deaf.head()
        assert status == 200
        size = 0
        while chunk := await deaf.chunk():
            size += len(chunk)
        assert size > 9_000_000


async def test_more_requests_than_the_rate_are_429() -> None:
    async with running(rate_limit=1) as rig:
        wire = await rig.http()
        statuses = [(await wire.post(initialize())).status for _ in range(3)]
        assert statuses == [200, 200, 429]
        reply = await wire.post(initialize())
        assert (reply.json(), reply.headers["retry-after"]) == ({"error": "too many requests"}, "1")
        assert (await wire.request("GET", "/healthz")).status == 200


async def test_a_standing_stream_is_not_idle() -> None:
    async with running() as rig:
        wire = await rig.session()
        events = await open_events(await rig.again(wire))
        assert await events.block() == "id: g-0\ndata: "
        for connection in rig.connections:
            connection.tick(later(70))
        rig.server.registry.remove_tools("demo_echo")
        assert (await events.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("endless", [b"x-trailer: 1\r\n", b"x"], ids=["trailers", "one trailer"])
@pytest.mark.parametrize("start", [b"0\r\n", b"1;"], ids=["trailer", "extension"])
async def test_what_follows_a_body_without_end_ends_the_connection(start: bytes, endless: bytes) -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + start)
        await turn_until(lambda: rig.connections)
        connection = rig.connections[0]
        sent = 0
        while not connection.transport.is_closing() and sent < 10_000_000:
            wire.writer.write(endless * (10_000 // len(endless)))
            sent += 10_000
            await asyncio.sleep(0)
        assert connection.transport.is_closing()
        assert len(connection.headers) < 10
