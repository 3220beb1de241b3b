"""Which agents there are: sessions of every server, and calls of every way in, from the audit log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from dari.console.backends import ConsoleBackends
from dari.console.client_activity import MAX_CLIENTS, ClientActivity, parse_who
from dari.console.live import TopicOptions
from dari.console.topics.clients import follow_clients
from dari.core.audit.log import AuditLog
from dari.core.scopes import MCP_SCOPES, Grant
from dari.mcp.server import Server
from tests.support.demo_server import DemoTools, demo_server
from tests.support.waiting import until
from tests.support.wire import MemoryWire, call, initialize


def recorded(folder: Path) -> tuple[AuditLog, Server, ClientActivity]:
    log = AuditLog(folder / "audit", batch_s=0.001)
    server = demo_server(DemoTools())
    server.registry.call_log = lambda: log
    activity = ClientActivity(lambda: log, lambda: [server])
    activity.start()
    return log, server, activity


async def test_the_first_call_of_an_agent_is_seen_and_its_token_names_it(tmp_path: Path) -> None:
    log, server, activity = recorded(tmp_path)
    wire = MemoryWire(server)
    wire.grant = wire.session.grant = Grant("mcp", MCP_SCOPES, client="work-laptop")
    await wire.ask(initialize())
    (before,) = activity.clients()
    assert (before.client, before.name, before.sessions, before.first_call_unix) == ("work-laptop", "test", 1, 0.0)
    await wire.ask(call("demo_echo", text="x"))
    await until(lambda: activity.clients()[0].calls == 1)
    (after,) = activity.clients()
    assert after.first_call_unix == after.last_call_unix > 0
    server.close_session(wire.session)
    assert [(one.sessions, one.calls) for one in activity.clients()] == [(0, 1)]
    log.close()


async def test_people_are_not_agents(tmp_path: Path) -> None:
    log, _server, activity = recorded(tmp_path)
    for who in ("cli", "app:console", "mcpx:a", "mcp:Cursor"):
        log.call("crab", "tool", "ok", who=who)
    await until(lambda: activity.clients())
    assert [one.who for one in activity.clients()] == ["mcp:Cursor"]
    log.close()


async def test_clients_that_make_names_up_are_forgotten_oldest_first(tmp_path: Path) -> None:
    log, _server, activity = recorded(tmp_path)
    for number in range(MAX_CLIENTS + 5):
        log.call("crab", "tool", "ok", who=f"mcp:{number}")
    log.call("crab", "tool", "ok", who="mcp:last")
    await until(lambda: any(one.name == "last" for one in activity.clients()))
    assert len(activity.clients()) == MAX_CLIENTS
    log.close()


async def test_the_topic_tells_the_whole_list_at_each_change(tmp_path: Path) -> None:
    log, _server, activity = recorded(tmp_path)
    backends = cast(ConsoleBackends, SimpleNamespace(activity=activity))
    events = follow_clients(backends, "", TopicOptions())
    assert (await anext(events)).clients == []
    log.call("crab", "tool", "ok", who="mcp@one:A")
    async with asyncio.timeout(20):
        (seen,) = (await anext(events)).clients
    assert (seen.client, seen.name, seen.calls) == ("one", "A", 1)
    activity.stop()
    log.close()


def test_what_a_client_calls_itself_cannot_look_like_a_token() -> None:
    assert parse_who("mcp:@one:x").client == ""
    assert parse_who("mcp@one:@two:x").client == "one"
