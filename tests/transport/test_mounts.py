"""Other servers at other paths of one listener: each with its own sessions, one guard for all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.core.registry import Registry
from dari.core.scopes import MCP_GRANT
from dari.mcp.server import Info, Server
from dari.settings import ServeSettings
from dari.transport.server import McpListeners
from tests.support.demo_server import DemoTools, demo_server
from tests.support.transports import Rig, open_events
from tests.support.waiting import turn_until
from tests.support.wire import HttpReply, HttpWire, call, initialize, stateless


class Mounted(Rig):
    other: Server
    places: dict[str, Server | str]
    looked_for: list[str]


@asynccontextmanager
async def mounting(**settings: Any) -> AsyncIterator[Mounted]:
    other = Server(Registry(), Info(name="other", version="1"))
    other.registry.add_toolkit(DemoTools())
    places: dict[str, Server | str] = {"/s/other/mcp": other, "/s/gone/mcp": "there is no server 'gone'; known: other"}
    chosen = ServeSettings(**{"transport": "http", "http_port": 0, **settings})
    tools = DemoTools()
    server = demo_server(tools)
    looked_for: list[str] = []

    def find(path: str) -> Server | str | None:
        looked_for.append(path)
        return places.get(path)

    hub = McpListeners(server, chosen, MCP_GRANT, find_server=find)
    await hub.start()
    rig = Mounted(hub, server, tools, chosen)
    rig.other, rig.places, rig.looked_for = other, places, looked_for
    try:
        yield rig
    finally:
        await rig.close_wires()
        await hub.stop()
        server.close()
        other.close()


async def post(wire: HttpWire, path: str, message: dict[str, Any], **headers: str) -> HttpReply:
    reply = await wire.request("POST", path, json.dumps(message).encode(), headers)
    if session := reply.headers.get("mcp-session-id"):
        wire.headers["Mcp-Session-Id"] = session
    return reply


async def test_each_path_has_its_own_server_on_one_connection() -> None:
    async with mounting() as rig:
        wire = await rig.http()
        names = []
        for path in ("/mcp", "/s/other/mcp", "/s/other/mcp?x=1"):
            wire.headers.pop("Mcp-Session-Id", None)
            names.append((await post(wire, path, initialize())).json()["result"]["serverInfo"]["name"])
        assert names == ["demo", "other", "other"]


async def test_a_session_belongs_to_the_path_it_was_opened_at() -> None:
    async with mounting() as rig:
        wire = await rig.http()
        await post(wire, "/s/other/mcp", initialize())
        assert (await post(wire, "/s/other/mcp", call("demo_quick", text="a"))).status == 200
        assert (await post(wire, "/mcp", call("demo_quick", text="a"))).status == 404
        assert len(rig.other.sessions) == 1
        assert (await wire.request("DELETE", "/s/other/mcp")).status == 204
        assert len(rig.other.sessions) == 0


async def test_where_nothing_is_the_reason_is_told_to_those_who_may_ask(tmp_path: Path) -> None:
    async with mounting(token_path=tmp_path / "token") as rig:
        wire = await rig.http()
        missing = await post(wire, "/s/gone/mcp", initialize())
        assert (missing.status, missing.json()) == (404, {"error": "there is no server 'gone'; known: other"})
        assert (await post(wire, "/s/gone/mcp", initialize(), Authorization="Bearer no")).status == 401
        assert (await post(wire, "/s/other/mcp", initialize(), Authorization="Bearer no")).status == 401
        assert (await post(wire, "/s/other/mcp", initialize(), Origin="http://evil.example")).status == 403


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer no"}, {"Origin": "http://evil.example"}, {"Host": "evil.example"}]
)
async def test_nothing_is_looked_for_on_behalf_of_who_is_not_let_in(tmp_path: Path, headers: dict[str, str]) -> None:
    """To look for a server may start it, and any web page can send a request here."""
    async with mounting(token_path=tmp_path / "token") as rig:
        for path in ("/s/other/mcp", "/s/other", "/"):
            await post(await rig.http(), path, initialize(), **headers)
        assert rig.looked_for == []
        assert (await post(await rig.http(), "/s/other/mcp", initialize())).status == 200
        assert rig.looked_for == ["/s/other/mcp"]


async def test_paths_that_are_nobodys_stay_with_the_other_app() -> None:
    async with mounting() as rig:
        wire = await rig.http()
        assert (await wire.request("GET", "/healthz")).json() == {"status": "ok"}
        assert (await post(wire, "/s/other", initialize())).json() == {"error": "not found"}


async def test_the_stateless_era_works_at_every_path() -> None:
    async with mounting() as rig:
        wire = await rig.http()
        message = stateless(call("demo_quick", text="a"))
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "demo_quick"}
        reply = await post(wire, "/s/other/mcp", message, **headers)
        assert reply.json()["result"]["structuredContent"] == {"text": "a", "times": 1}


async def test_the_unix_socket_has_the_same_paths(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o700)
    async with mounting(socket_path=tmp_path / "s" / "mcp.sock") as rig:
        wire = await rig.http_on_unix()
        reply = await post(wire, "/s/other/mcp", initialize())
        assert reply.json()["result"]["serverInfo"]["name"] == "other"
        lines = await rig.unix()
        assert (await lines.ask(initialize()))["result"]["serverInfo"]["name"] == "demo"


async def test_a_stop_ends_the_streams_of_every_path() -> None:
    async with mounting() as rig:
        wire = await rig.http()
        await post(wire, "/s/other/mcp", initialize())
        assert rig.hub.web is not None
        (endpoint,) = rig.hub.web.endpoint.mounted
        wire.send("GET", "/s/other/mcp", headers={"Content-Type": ""})
        assert (await wire.head())[0] == 200
        await turn_until(lambda: endpoint.open)
        stopping = asyncio.create_task(rig.hub.stop())
        while await wire.chunk():
            pass
        await stopping
        assert len(rig.other.sessions) == 0


async def test_idle_sessions_of_every_path_are_swept() -> None:
    async with mounting(session_ttl_s=0.0) as rig:
        wire = await rig.http()
        await post(wire, "/s/other/mcp", initialize())
        assert len(rig.other.sessions) == 1
        assert rig.hub.web is not None
        await rig.hub.web.tick(asyncio.get_running_loop().time() + 100)
        assert len(rig.other.sessions) == 0


async def test_a_server_that_takes_the_place_of_another_is_asked_from_then_on() -> None:
    async with mounting() as rig:
        wire = await rig.http()
        await post(wire, "/s/other/mcp", initialize())
        rig.places["/s/other/mcp"] = third = Server(Registry(), Info(name="third", version="1"))
        wire.headers.pop("Mcp-Session-Id")
        assert (await post(wire, "/s/other/mcp", initialize())).json()["result"]["serverInfo"]["name"] == "third"
        third.close()


async def test_a_stream_of_the_main_path_is_untouched() -> None:
    async with mounting() as rig:
        wire = await rig.session()
        await open_events(wire)
        other = await rig.again(wire)
        assert (await other.post(call("demo_quick", text="a"))).status == 200
