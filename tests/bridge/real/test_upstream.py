"""Real servers through the bridge itself: their results, and their failures to start."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dari.bridge.service import Bridge
from dari.bridge.upstream.caller import Caller
from dari.bridge.upstream.upstream import Upstream
from dari.errors import DariError, TimedOut, Unavailable
from tests.bridge.real.direct import Said
from tests.support.real_servers import Json, RealServer, payload
from tests.support.real_servers_home import House

pytestmark = [pytest.mark.local_mcp, pytest.mark.xdist_group("real servers")]
ME = Caller("tester", session="s")
AT_ONCE = 3


async def called(upstream: Upstream, tool: str, arguments: Json) -> Json:
    return payload(bytes(await upstream.call_tool(tool, json.dumps(arguments).encode(), ME)))


def test_every_server_gives_through_the_bridge_what_it_gives_directly(
    servers: dict[str, RealServer], said: dict[str, Said], tmp_path: Path
) -> None:
    # Eight starts, some slow: more than the time that a test in an event loop has.
    asyncio.run(_compare(servers, said, tmp_path))


async def _compare(servers: dict[str, RealServer], said: dict[str, Said], tmp_path: Path) -> None:
    house, turn = House(tmp_path, servers.values()), asyncio.Semaphore(AT_ONCE)

    async def check(upstream: Upstream) -> None:
        server, told = servers[upstream.id], said[upstream.id]
        async with turn:
            assert {tool.name: tool.shown for tool in await upstream.tools()} == told.tools
            assert await called(upstream, server.tool, server.arguments) == told.answer
            about = await upstream.about()
            assert (about.era, about.version) == (server.era, server.version)

    async with Bridge(tmp_path / "state") as bridge, asyncio.TaskGroup() as tasks:
        found = bridge.view(house.around).upstreams()
        assert {upstream.id for upstream in found} == servers.keys()
        for upstream in found:
            tasks.create_task(check(upstream))


async def test_servers_that_do_not_start_say_why_and_keep_nobody_waiting(
    servers: dict[str, RealServer], broken: dict[str, RealServer], tmp_path: Path
) -> None:
    house = House(tmp_path, [*broken.values(), servers["memory"]])

    async def failure(upstream: Upstream) -> DariError:
        with pytest.raises(DariError) as caught:
            await upstream.start()
        return caught.value

    async with Bridge(tmp_path / "state") as bridge, asyncio.TaskGroup() as tasks:
        view = bridge.view(house.around)
        hanging, crashing = (tasks.create_task(failure(view.upstream(name))) for name in ("hanging", "crashing"))
        server = servers["memory"]
        assert await called(view.upstream("memory"), server.tool, server.arguments) == server.answer
        assert not hanging.done()
        assert isinstance(slow := await hanging, TimedOut) and "within 3 s" in slow.message
        assert "Stripe MCP Server running on stdio" in slow.hint
        assert isinstance(dead := await crashing, Unavailable) and "exit status 1" in dead.message
        assert "'Server' object has no attribute 'list_resources'" in dead.hint
        status = {one.id: one for one in bridge.statuses()}
        assert status["memory"].state == "ready"
        assert "ready" not in (status["hanging"].state, status["crashing"].state)
