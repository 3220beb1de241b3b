"""One HTTP connection: pipelining, keep-alive, chunked bodies, HTTP/1.0, Expect, upgrades, garbage."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.transports import running
from tests.support.waiting import turn_until
from tests.support.wire import HttpWire, Json, call, initialize


def ping(request_id: int) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": "ping"}


def post(wire: HttpWire, message: Json) -> None:
    wire.send("POST", "/mcp", json.dumps(message).encode())


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with running() as rig:
        wire = await rig.session()
        post(wire, call("demo_echo", 1, text="slow enough to need a task"))
        wire.send("GET", "/healthz")
        post(wire, ping(2))
        wire.send("GET", "/nowhere")
        post(wire, call("demo_echo", 3, text="x"))
        wire.send("DELETE", "/mcp")
        replies = [await wire.receive() for _ in range(6)]
        assert [reply.status for reply in replies] == [200, 200, 200, 404, 200, 204]
        assert [replies[n].json().get("id") for n in (0, 2, 4)] == [1, 2, 3]
        assert replies[1].json() == {"status": "ok"}


async def test_a_thousand_requests_pipelined_behind_a_slow_one_are_all_answered() -> None:
    async with running() as rig:
        wire = await rig.session()
        post(wire, call("demo_hang", 0))
        for number in range(1, 1001):
            post(wire, ping(number))
        await rig.tools.started.wait()
        rig.tools.release.set()
        ids = [(await wire.receive()).json()["id"] for _ in range(1001)]
        assert ids == list(range(1001))
        assert not rig.connections[0].pipeline


async def test_what_is_pipelined_behind_a_stream_waits_for_its_end() -> None:
    async with running() as rig:
        wire = await rig.session()
        message = call("demo_count", 1, to=3)
        message["params"]["_meta"] = {"progressToken": "t"}
        post(wire, message)
        post(wire, ping(2))
        first, second = await wire.receive(), await wire.receive()
        assert first.headers["content-type"] == "text/event-stream"
        assert (first.json()["id"], second.json()["id"]) == (1, 2)


async def test_an_http_1_0_request_behind_a_stream_does_not_change_its_framing() -> None:
    async with running() as rig:
        wire = await rig.session()
        message = call("demo_count", 1, to=3)
        message["params"]["_meta"] = {"progressToken": "t"}
        post(wire, message)
        wire.writer.write(b"GET /mcp HTTP/1.0\r\nHost: localhost\r\n\r\n")
        first = await wire.receive()
        assert first.headers["transfer-encoding"] == "chunked"
        assert first.json()["id"] == 1
        assert (await wire.receive()).status == 406


async def test_a_refused_head_does_not_borrow_the_headers_of_the_next_request() -> None:
    async with running() as rig:
        wire = await rig.session()
        post(wire, call("demo_hang", 1))
        wire.send("POST", "/mcp", json.dumps(ping(2)).encode(), {"mcp-name": "a", "Mcp-Name": "b"})
        post(wire, ping(3))
        await rig.tools.started.wait()
        rig.tools.release.set()
        assert (await wire.receive()).json()["id"] == 1
        refused = await wire.receive()
        assert refused.status == 400
        assert refused.json() == {"error": "header mcp-name appears more than once"}


async def test_an_http_1_0_client_gets_its_answer_and_the_end_of_the_connection() -> None:
    async with running() as rig:
        wire = await rig.session()
        session = wire.headers["Mcp-Session-Id"]
        body = json.dumps(ping(1)).encode()
        head = (
            f"POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n"
        )
        wire.writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        reply = await wire.receive()
        assert (reply.status, reply.json()["id"]) == (200, 1)
        assert reply.headers["connection"] == "close"
        assert await wire.reader.read() == b""


async def test_an_http_1_0_client_gets_events_until_the_connection_ends() -> None:
    async with running() as rig:
        wire = await rig.session()
        message = call("demo_count", 1, to=2)
        message["params"]["_meta"] = {"progressToken": "t"}
        body = json.dumps(message).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        wire.writer.write(f"POST /mcp HTTP/1.0\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        _, headers = await wire.head()
        assert "transfer-encoding" not in headers
        assert (await wire.reader.read()).count(b"data: {") == 5


async def test_a_client_that_expects_continue_is_told_to_go_on() -> None:
    async with running() as rig:
        wire = await rig.http()
        body = json.dumps(initialize()).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        wire.writer.write(
            f"POST /mcp HTTP/1.1\r\n{head}Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        assert (await wire.head())[0] == 100
        wire.writer.write(body)
        assert (await wire.receive()).status == 200


async def test_a_refused_client_that_expects_continue_is_not_told_to_go_on() -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.writer.write(b"POST /mcp HTTP/1.1\r\nHost: evil\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        reply = await wire.receive()
        assert (reply.status, reply.headers["connection"]) == (403, "close")


async def test_a_chunked_body_is_read_however_it_is_cut() -> None:
    async with running() as rig:
        wire = await rig.http()
        body = json.dumps(initialize()).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        sent = f"POST /mcp HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode()
        for start in range(0, len(body), 7):
            piece = body[start : start + 7]
            sent += b"%x\r\n%b\r\n" % (len(piece), piece)
        sent += b"0\r\n\r\n"
        for start in range(0, len(sent), 13):
            wire.writer.write(sent[start : start + 13])
            await asyncio.sleep(0)
        assert (await wire.receive()).json()["id"] == "init"


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "GET", "PUT", "DELETE", "HEAD"])
async def test_a_refused_request_leaves_the_connection_usable(method: str) -> None:
    async with running() as rig:
        wire = await rig.http()
        body = b"x" * 100_000 if method == "POST" else b""
        wire.send(method, "/mcp", body, {"Host": "evil.example"})
        status, headers = await wire.head()
        if method != "HEAD":
            await wire.reader.readexactly(int(headers["content-length"]))
        assert (status, headers.get("connection")) == (403, None)
        assert (await wire.post(initialize())).status == 200


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://localhost"}])
async def test_a_connection_that_was_refused_or_preflighted_is_ended_when_idle(headers: dict[str, str]) -> None:
    async with running() as rig:
        wire = await rig.http()
        await wire.request("OPTIONS", "/mcp", headers=headers)
        rig.connections[0].tick(asyncio.get_running_loop().time() + 76)
        assert await wire.reader.read() == b""


async def test_connection_close_is_honoured() -> None:
    async with running() as rig:
        wire = await rig.session()
        both = b""
        for message, extra in ((ping(1), "Connection: close\r\n"), (call("demo_hang", 2), "")):
            head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items()) + extra
            body = json.dumps(message)
            both += f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        wire.writer.write(both)
        reply = await wire.receive()
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        assert await wire.reader.read() == b""
        assert not rig.tools.started.is_set(), "what follows the last request is not served"


async def test_what_follows_a_request_that_ended_the_connection_is_not_served() -> None:
    async with running() as rig:
        wire = await rig.session()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        body = json.dumps(call("demo_hang", 2))
        refused = f"POST /mcp HTTP/1.1\r\n{head}Host: again\r\nContent-Length: 2\r\n\r\n{{}}"
        wire.writer.write(f"{refused}POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert (await wire.receive()).status == 400
        assert await wire.reader.read() == b""
        assert len(rig.server.calls) == 0


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("step", [10_000, 50])
async def test_an_offer_to_upgrade_is_declined_by_answering(framing: str, step: int) -> None:
    """Java's client offers h2c on the first request of every connection."""
    async with running() as rig:
        wire = await rig.session()
        offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
        body = json.dumps(call("demo_echo", 1, text="x" * 300)).encode()
        if framing == "chunked":
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        length = "Transfer-Encoding: chunked" if framing == "chunked" else f"Content-Length: {len(body)}"
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        sent = f"POST /mcp HTTP/1.1\r\n{head}{offer}{length}\r\n\r\n".encode() + body
        for start in range(0, len(sent), step):
            wire.writer.write(sent[start : start + step])
            await asyncio.sleep(0)
        post(wire, ping(2))
        assert [(await wire.receive()).json()["id"] for _ in range(2)] == [1, 2]


async def test_an_offer_to_speak_websocket_is_answered_in_http() -> None:
    async with running() as rig:
        wire = await rig.http()
        offer = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        assert (await wire.request("GET", "/healthz", headers=offer)).status == 200
        assert (await wire.request("GET", "/mcp", headers=offer)).status == 400
        wire.writer.write(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n")
        assert (await wire.receive()).status == 400


async def test_garbage_is_answered_with_400_and_the_end() -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert (await wire.receive()).status == 400
        assert await wire.reader.read() == b""


async def test_garbage_behind_a_request_does_not_take_its_answer() -> None:
    async with running() as rig:
        wire = await rig.session()
        post(wire, call("demo_hang", 1))
        wire.writer.write(b"\x00\x00garbage\r\n\r\n")
        await rig.tools.started.wait()
        rig.tools.release.set()
        reply = await wire.receive()
        assert (reply.status, reply.json()["id"]) == (200, 1)
        assert await wire.reader.read() == b""


async def test_garbage_behind_a_refused_request_changes_nothing() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with running() as rig:
        wire = await rig.http()
        wire.writer.write(
            b"POST /mcp HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 3\r\n\r\nabc\x00\x00garbage\r\n\r\n"
        )
        assert (await wire.receive()).status == 400
        assert await wire.reader.read() == b""
        await turn_until(lambda: not rig.connections)
    assert complaints == []


async def test_garbage_inside_a_chunked_body_is_400() -> None:
    async with running() as rig:
        wire = await rig.http()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        wire.writer.write(
            f"POST /mcp HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode() + b"5\r\nabcdeXYZ\r\n"
        )
        assert (await wire.receive()).status == 400
        assert await wire.reader.read() == b""
        assert rig.counts()["exchanges"] == 0


async def test_a_body_that_waits_behind_a_long_call_is_not_too_slow() -> None:
    async with running() as rig:
        wire = await rig.session()
        post(wire, call("demo_hang", 1))
        body = json.dumps(ping(2)).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in wire.headers.items())
        wire.writer.write(f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode())
        connection = rig.connections[0]
        await turn_until(lambda: connection.pipeline)
        connection.tick(asyncio.get_running_loop().time() + 600)
        wire.writer.write(body)
        rig.tools.release.set()
        assert [(await wire.receive()).json()["id"] for _ in range(2)] == [1, 2]
