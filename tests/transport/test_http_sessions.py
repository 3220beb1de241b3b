"""Sessions over HTTP: made by initialize, kept while used, swept when idle, ended by DELETE, bounded."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from dari.core.scopes import MCP_GRANT
from dari.transport import sessions
from tests.support.transports import Rig, logged, open_events, running
from tests.support.waiting import turn_until
from tests.support.wire import Json, call, initialize

PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
TTL_S = 30 * 60.0


class Clock:
    """Stands in for the loop's clock in the session table."""

    def __init__(self, rig: Rig) -> None:
        self.now_s = asyncio.get_running_loop().time()
        rig.hub.sessions._loop = self  # type: ignore[assignment]

    def time(self) -> float:
        return self.now_s


async def test_initialize_makes_a_session_that_later_requests_name() -> None:
    async with running() as rig:
        wire = await rig.http()
        reply = await wire.post(initialize(roots={}))
        session_id = reply.headers["mcp-session-id"]
        assert re.fullmatch(r"[\x21-\x7e]{32,}", session_id)
        session = rig.hub.sessions.find(session_id.encode())
        assert session is not None
        assert (session.client_info, session.capabilities) == ({"name": "test", "version": "1"}, {"roots": {}})
        reply = await wire.post(PING, **{"Mcp-Session-Id": session_id})
        assert reply.status == 200
        assert "mcp-session-id" not in reply.headers


async def test_a_failed_initialize_leaves_no_session() -> None:
    async with running() as rig:
        wire = await rig.http()
        for params in ({}, {"protocolVersion": 7}, {"protocolVersion": "2025-11-25", "_meta": 1}):
            message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            reply = await wire.post(json.dumps(message).encode())
            assert "error" in reply.json()
            assert "mcp-session-id" not in reply.headers
        assert len(rig.hub.sessions) == len(rig.server.sessions) == 0


async def test_a_strict_server_makes_no_session_for_another_version() -> None:
    async with running(strict=True) as rig:
        reply = await (await rig.http()).post(initialize("2025-11-25"))
        assert (reply.status, reply.json()["error"]["code"]) == (200, -32602)
        assert "mcp-session-id" not in reply.headers
        assert len(rig.hub.sessions) == 0


async def test_sessions_do_not_share_versions() -> None:
    async with running() as rig:
        old, new = await rig.session("2024-11-05"), await rig.session("2025-11-25")
        assert "error" in (await old.post(call("demo_missing"))).json()
        assert (await new.post(call("demo_missing"))).json()["result"]["isError"] is True


async def test_the_life_of_a_session_slides_with_its_use() -> None:
    async with running() as rig:
        wire, clock = await rig.session(), Clock(rig)
        for _ in range(5):
            clock.now_s += TTL_S - 1
            assert (await wire.post(PING)).status == 200
            assert rig.hub.sessions.sweep() == 0
        clock.now_s += TTL_S + 1
        with logged() as lines:
            assert (await wire.post(PING)).status == 404
        assert any(line.startswith("transport=http event=session_expired session=") for line in lines)
        assert len(rig.hub.sessions) == len(rig.server.sessions) == 0


async def test_an_expired_session_is_401_in_strict_mode() -> None:
    async with running(strict=True, session_ttl_s=5.0) as rig:
        wire, clock = await rig.session("2024-11-05"), Clock(rig)
        clock.now_s += 6
        reply = await wire.post(PING)
        assert (reply.status, reply.json()) == (401, {"error": "session expired or invalid"})


async def test_the_sweep_removes_idle_sessions_and_no_others() -> None:
    async with running() as rig:
        await rig.session()
        used, clock = await rig.session(), Clock(rig)
        clock.now_s += TTL_S / 2 + 1
        await used.post(PING)
        clock.now_s += TTL_S / 2
        with logged() as lines:
            assert rig.hub.sessions.sweep() == 1
        assert len([line for line in lines if "event=session_expired" in line]) == 1
        assert (await used.post(PING)).status == 200


async def test_a_session_with_a_running_call_or_an_open_stream_does_not_expire() -> None:
    async with running() as rig:
        calling, listening, clock = await rig.session(), await rig.session(), Clock(rig)
        calling.send("POST", "/mcp", json.dumps(call("demo_hang", 7)).encode())
        await rig.tools.started.wait()
        events = await open_events(await rig.again(listening))
        await events.block()
        clock.now_s += 10 * TTL_S
        assert rig.hub.sessions.sweep() == 0
        rig.tools.release.set()
        assert (await calling.receive()).json()["id"] == 7


async def test_the_tick_sweeps_once_a_minute() -> None:
    async with running(session_ttl_s=1.0) as rig:
        await rig.session()
        clock = Clock(rig)
        assert rig.hub.web is not None
        await rig.hub.web.tick(clock.now_s + 59)
        clock.now_s += 2
        assert len(rig.hub.sessions) == 1
        await rig.hub.web.tick(clock.now_s + 61)
        assert len(rig.hub.sessions) == 0


async def test_delete_ends_the_session_its_calls_and_its_streams() -> None:
    async with running() as rig:
        wire = await rig.session()
        calling = await rig.again(wire)
        calling.send("POST", "/mcp", json.dumps(call("demo_hang", 7)).encode())
        await rig.tools.started.wait()
        events = await open_events(await rig.again(wire))
        await events.block()
        assert (await wire.request("DELETE", "/mcp")).status == 204
        assert "error" in (await calling.receive()).json()
        assert rig.tools.cancelled.is_set()
        assert await events.block() == ""
        assert len(rig.hub.sessions) == len(rig.server.sessions) == len(rig.server.calls) == 0
        assert (await wire.request("DELETE", "/mcp")).status == 404


async def test_an_idle_session_that_did_nothing_goes_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    async with running() as rig:
        worker = await rig.session()
        await worker.ask(call("demo_echo", 2, text="x"))
        abandoned = [await rig.session() for _ in range(20)]
        assert len(rig.hub.sessions) == len(rig.server.sessions) == 3
        assert (await worker.ask(call("demo_echo", 3, text="x")))["id"] == 3
        assert (await abandoned[0].post(call("demo_echo", 2, text="x"))).status == 404
        assert (await abandoned[-1].ask(call("demo_echo", 2, text="x")))["id"] == 2


async def test_ten_thousand_abandoned_sessions_lock_nobody_out() -> None:
    async with running() as rig:
        worker = await rig.session()
        await worker.ask(call("demo_echo", 2, text="x"))
        table = rig.hub.sessions
        for _ in range(10_000):
            assert table.has_room("127.0.0.1")
            table.keep(table.draft(MCP_GRANT, "127.0.0.1"))
        assert len(table) == sessions.MAX_SESSIONS_PER_PEER
        newcomer = await rig.session()
        assert (await newcomer.ask(call("demo_echo", 2, text="x")))["id"] == 2
        assert (await worker.ask(call("demo_echo", 3, text="x")))["id"] == 3


async def test_among_sessions_that_worked_the_least_recently_used_one_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS_PER_PEER", 2)
    async with running() as rig:
        first, second = await rig.session(), await rig.session()
        for wire in (first, second, first):
            await wire.ask(call("demo_echo", 2, text="x"))
            await wire.ask(call("demo_echo", 3, text="x"))
        await rig.session()
        assert (await second.post(call("demo_echo", 4, text="x"))).status == 404
        assert (await first.ask(call("demo_echo", 4, text="x")))["id"] == 4


async def test_who_makes_many_sessions_loses_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 10)
    async with running() as rig:
        table = rig.hub.sessions
        quiet = table.draft(MCP_GRANT, "10.0.0.1")
        table.keep(quiet)
        for _ in range(50):
            assert table.has_room("10.0.0.2")
            table.keep(table.draft(MCP_GRANT, "10.0.0.2"))
        assert len(table) == 10
        assert table.find(quiet.id.encode()) is quiet


async def test_where_every_session_is_busy_a_new_one_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 1)
    async with running() as rig:
        wire = await rig.session()
        events = await open_events(await rig.again(wire))
        await events.block()
        reply = await (await rig.http()).post(initialize())
        assert (reply.status, reply.json()) == (503, {"error": "too many sessions, and none of them is idle"})
        await wire.request("DELETE", "/mcp")
        assert (await wire.post(initialize())).status == 200


async def test_a_request_is_cancelled_by_id_within_its_session_only() -> None:
    async with running() as rig:
        wire, stranger = await rig.session(), await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 7)).encode())
        await rig.tools.started.wait()
        cancel: Json = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert (await stranger.post(cancel)).status == 202
        assert not rig.tools.cancelled.is_set()
        assert (await (await rig.again(wire)).post(cancel)).status == 202
        assert (await wire.receive()).json()["error"]["code"] == -32800
        assert rig.tools.cancelled.is_set()


async def test_two_calls_with_one_id_on_two_connections_are_both_answered_and_both_ended() -> None:
    async with running() as rig:
        wire = await rig.session()
        other = await rig.again(wire)
        for each in (wire, other):
            each.send("POST", "/mcp", json.dumps(call("demo_hang", 7)).encode())
        await turn_until(lambda: len(rig.server.calls) == 2)
        await (await rig.again(wire)).request("DELETE", "/mcp")
        for each in (wire, other):
            assert (await each.receive()).json()["error"]["code"] == -32800
        assert len(rig.server.calls) == 0
