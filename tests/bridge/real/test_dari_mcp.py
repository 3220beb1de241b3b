"""Real servers behind `dari mcp`: the SDK and the Inspector start it, Claude Code probes it; the daemon serves it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.bridge.real.clients import called, listed, merged
from tests.bridge.real.direct import Said
from tests.e2e.test_claude_code import ID, INITIALIZE, WANTED, legacy, modern
from tests.support.real_clients import MODES, inspector
from tests.support.real_servers import RealServer, payload
from tests.support.real_servers_home import DARI, House
from tests.support.wire import Json, StreamWire

pytestmark = [pytest.mark.local_mcp, pytest.mark.e2e, pytest.mark.xdist_group("real servers"), pytest.mark.timeout(180)]


@pytest.fixture(autouse=True, scope="module")
def warm(house: House, servers: dict[str, RealServer]) -> None:
    house.prewarm(servers)


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_starts_it_and_gets_every_servers_tools_and_results(
    mode: str, house: House, servers: dict[str, RealServer], said: dict[str, Said], tmp_path: Path
) -> None:
    words = StdioServerParameters(command=str(DARI), args=["mcp"], cwd=house.root, env=house.env)
    with (tmp_path / "stderr").open("w") as log:
        async with Client(stdio_client(words, errlog=log), mode=mode) as client:
            shown = await listed(client)
            assert {name: tool for name, tool in shown.items() if "__" in name} == merged(said)
            for server in servers.values():
                answer = await called(client, f"{server.id}__{server.tool}", server.arguments)
                assert answer == said[server.id].answer


async def test_the_inspector_starts_it_lists_and_calls(
    house: House, servers: dict[str, RealServer], tmp_path: Path
) -> None:
    server = servers["git"]
    target = ("env", *(f"{name}={value}" for name, value in house.env.items()), str(DARI), "mcp")
    call = ("--tool-name", f"git__{server.tool}", "--tool-args-json", json.dumps(server.arguments))
    done = await inspector(tmp_path).run(*target, "--method", "tools/call", *call, "--protocol-era", "modern")
    assert done.exit_code == 0, done.errors
    assert payload(done.output["result"]) == server.answer


@asynccontextmanager
async def pipe_to(house: House) -> AsyncIterator[StreamWire]:
    process = await asyncio.create_subprocess_exec(
        *(str(DARI), "mcp"),
        cwd=house.root,
        env=house.env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    try:
        yield StreamWire(process.stdout, process.stdin)
        process.stdin.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_claude_code_probes_lists_listens_and_may_initialize_after_all(
    house: House, servers: dict[str, RealServer]
) -> None:
    def call(server: RealServer) -> Json:
        return {"name": f"{server.id}__{server.tool}", "arguments": server.arguments}

    async with pipe_to(house) as pipe:
        discovered = (await pipe.ask(modern("server/discover", "server-discover-probe-1")))["result"]
        assert "2026-07-28" in discovered["supportedVersions"]
        assert discovered["capabilities"]["tools"] == {"listChanged": True}
        shown = {tool["name"] for tool in (await pipe.ask(modern("tools/list", 1)))["result"]["tools"]}
        assert {f"{one.id}__{one.tool}" for one in servers.values()} <= shown
        heard = await pipe.ask(modern("subscriptions/listen", "listen:0", notifications=WANTED))
        assert heard["method"] == "notifications/subscriptions/acknowledged"
        assert heard["params"]["_meta"] == {ID: "listen:0"}
        for number, name in enumerate(("memory", "time", "postgres"), 2):
            result = await answer_to(pipe, modern("tools/call", number, **call(servers[name])))
            assert result["resultType"] == "complete"
            assert payload(result) == servers[name].answer
        assert (await answer_to(pipe, INITIALIZE))["protocolVersion"] == "2025-11-25"
        pipe.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number, name in enumerate(("memory", "time", "postgres"), 10):
            result = await answer_to(pipe, legacy("tools/call", number, **call(servers[name])))
            assert "resultType" not in result
            assert payload(result) == servers[name].answer


async def answer_to(pipe: StreamWire, request: Json) -> Json:
    """The result, whatever news comes before it."""
    reply = await pipe.ask(request)
    while reply.get("id") != request["id"]:
        reply = await pipe.receive()
    result: Json = reply["result"]
    return result
