"""The ASGI app beside `/mcp`: it shares the connection, its order, its limits and its end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.support.transports import running
from tests.support.waiting import turn_until
from tests.support.wire import Json

PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class App:
    """Answers with what it was sent; waits where the path says so."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.was_disconnected = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.entered.set()
        body = b""
        if scope["path"] == "/bug":
            raise RuntimeError("boom")
        if scope["path"] == "/wait":
            await self.release.wait()
        while scope["path"] != "/early":
            message = await receive()
            if message["type"] == "http.disconnect":
                self.was_disconnected.set()
                return
            body += message.get("body", b"")
            if not message.get("more_body") and scope["path"] != "/listen":
                break
        shown = {"path": scope["path"], "query": scope["query_string"].decode(), "size": len(body)}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(shown).encode()})


async def test_the_app_gets_every_other_path_with_its_body_and_query() -> None:
    async with running(app=App()) as rig:
        wire = await rig.session()
        reply = await wire.request("POST", "/files/%ED%95%9C?a=1", b"x" * 300_000)
        assert reply.json() == {"path": "/files/한", "query": "a=1", "size": 300_000}
        assert (await wire.post(PING)).status == 200


async def test_a_request_to_mcp_waits_for_the_app_and_the_app_for_mcp() -> None:
    app = App()
    async with running(app=app) as rig:
        wire = await rig.session()
        wire.send("GET", "/wait")
        wire.send("POST", "/mcp", json.dumps(PING).encode())
        wire.send("GET", "/after")
        await app.entered.wait()
        app.release.set()
        replies = [(await wire.receive()).json() for _ in range(3)]
        assert [reply.get("path") for reply in replies] == ["/wait", None, "/after"]


async def test_the_app_hears_that_its_client_is_gone_also_behind_a_pipelined_request() -> None:
    app = App()
    async with running(app=app) as rig:
        wire = await rig.session()
        wire.send("GET", "/listen")
        wire.send("POST", "/mcp", json.dumps(PING).encode())
        await app.entered.wait()
        await turn_until(lambda: rig.connections[0].pipeline)
        wire.writer.transport.abort()
        rig.connections[0].flow.resume_reading()
        await app.was_disconnected.wait()
        await turn_until(lambda: not rig.connections)


async def test_a_bug_in_the_app_is_500_and_harms_nobody_else() -> None:
    async with running(app=App()) as rig:
        wire = await rig.session()
        assert (await wire.request("GET", "/bug")).status == 500
        assert (await (await rig.again(wire)).post(PING)).status == 200


async def test_an_app_that_answers_before_the_body_is_read_leaves_the_connection_usable() -> None:
    async with running(app=App()) as rig:
        wire = await rig.session()
        reply = await wire.request("POST", "/early", b"x" * 200_000)
        assert reply.status == 200
        assert (await wire.post(PING)).status == 200
        connection = rig.connections[0]
        connection.tick(asyncio.get_running_loop().time() + 76)
        assert await wire.reader.read() == b""


async def test_a_slow_body_for_the_app_ends_like_any_other() -> None:
    app = App()
    async with running(app=app) as rig:
        wire = await rig.http()
        wire.writer.write(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
        await app.entered.wait()
        rig.connections[0].tick(asyncio.get_running_loop().time() + 61)
        assert await wire.reader.read() == b""
        await app.was_disconnected.wait()
