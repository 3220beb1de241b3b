"""The usual call over a pipe goes without a task; every rule of the long way holds on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.upstream.caller import Caller
from dari.bridge.upstream.upstream import Upstream
from dari.core.audit.query import query
from dari.core.pending import PendingResult
from dari.errors import NeedsApproval, TimedOut, Unavailable
from dari.mcp.client.errors import RemoteError
from tests.support.bridge import ME, Place, lab, text_of
from tests.support.lab import DEFAULT
from tests.support.waiting import until

pytestmark = pytest.mark.local_mcp

FOR_EVER = b'{"steps":1,"until":"/nowhere"}'


@asynccontextmanager
async def warm(place: Place, **options: Any) -> AsyncIterator[Upstream]:
    """A server that was called once: from here on nothing but the answer has to be waited for."""
    async with place.upstream(**options) as server:
        await server.call_tool("greet", b"{}", ME)
        yield server
        assert not server._calls.running


def begun(server: Upstream, name: str, arguments: bytes = b"{}", caller: Caller = ME) -> PendingResult:
    work = server.begin_call(name, arguments, caller)
    assert work is not None
    return work


async def test_results_refusals_and_failures_are_those_of_the_long_way(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(tmp_path, timeoutMs=60_000))
    async with place.bridge() as bridge:
        server = bridge.view(place.around()).upstream("lab")
        await server.call_tool("greet", b"{}", ME)
        model = Caller("model", for_model=True)
        assert text_of(await begun(server, "add", b'{"a":1,"b":2}')) == "3"
        assert "\u202e" not in text_of(await begun(server, "hidden", caller=model))
        assert json.loads(bytes(await begun(server, "fail")))["isError"] is True
        with pytest.raises(RemoteError, match="not today"):
            await begun(server, "refuse")
        assert server._calls.running == 0
        assert bridge.audit is not None and bridge.audit.flush()
    calls = [(one.tool, one.outcome, one.who) for one in query(tmp_path / "state/audit") if one.kind == "call"]
    assert sorted(calls) == [
        ("add", "ok", "tester"),
        ("fail", "tool_error", "tester"),
        ("greet", "ok", "tester"),
        ("hidden", "ok", "model"),
        ("refuse", "error", "tester"),
    ]


async def test_what_has_to_wait_or_is_refused_takes_the_long_way(tmp_path: Path) -> None:
    entry = lab(tmp_path, tools={"confirm": ["pid"]}, limits={"concurrency": 1})
    place = Place(tmp_path, entry)
    async with place.upstream() as cold:
        assert cold.begin_call("greet", b"{}", ME) is None  # nothing is started yet
    async with warm(place) as server:
        for name, arguments in (("nope", b"{}"), ("add", b'{"a":"one"}'), ("add", b"[1]"), ("pid", b"{}")):
            assert server.begin_call(name, arguments, ME) is None
        assert server.begin_call("greet", b"{}", Caller("tester", on_progress=lambda _: None)) is None
        assert server.begin_call("greet", b"{}", Caller("tester", log_level="debug")) is None  # to be asked for first
        running = begun(server, "wait", FOR_EVER)
        assert server.begin_call("greet", b"{}", ME) is None  # it has to stand in line
        running.future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert text_of(await begun(server, "greet")) == "hello"
    assert "call add" not in place.noted()


async def test_one_that_is_given_up_is_cancelled_on_the_server_and_recorded(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.bridge() as bridge:
        server = bridge.view(place.around()).upstream("lab")
        await server.call_tool("greet", b"{}", ME)

        async def wait() -> object:
            return await begun(server, "wait", FOR_EVER)

        waiting = asyncio.create_task(wait())
        await until(lambda: "call wait" in place.noted())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: any(line.startswith("cancelled") for line in place.noted()))
        assert server._calls.running == 0
        assert bridge.audit is not None and bridge.audit.flush()
    outcomes = {one.tool: one.outcome for one in query(tmp_path / "state/audit") if one.kind == "call"}
    assert outcomes["wait"] == "cancelled"


async def test_the_time_limit_of_the_profile_ends_it(tmp_path: Path) -> None:
    async with warm(Place(tmp_path, lab(tmp_path, timeoutMs=1500))) as server:
        with pytest.raises(TimedOut):
            await begun(server, "wait", FOR_EVER)


async def test_a_server_that_dies_under_it_is_asked_again_where_the_tool_allows_that(tmp_path: Path) -> None:
    restart = {"policy": "on-failure", "maxRestarts": 3, "backoffMs": 1}
    place = Place(tmp_path, lab(tmp_path, restart=restart))
    async with warm(place) as server:
        marker = json.dumps({"marker": str(tmp_path / "died")}).encode()
        assert text_of(await begun(server, "die_once", marker)) == "alive"
        with pytest.raises(Unavailable, match="exit status 7"):
            await begun(server, "die")
    assert place.noted().count("call die_once") == 2
    assert place.noted().count("call die") == 1


async def test_a_tool_that_changed_meanwhile_is_held(tmp_path: Path) -> None:
    async with warm(Place(tmp_path)) as server:
        assert await begun(server, "greet")
        other = [{**tool, "description": "Something else"} if tool["name"] == "greet" else tool for tool in DEFAULT]
        (tmp_path / "tools.json").write_text(json.dumps(other))
        await begun(server, "change")
        assert server.begin_call("greet", b"{}", ME) is None
        with pytest.raises(NeedsApproval):
            await server.call_tool("greet", b"{}", ME)
