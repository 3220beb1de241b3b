"""Real servers behind `dari up`, as real clients see them: one server, the servers' own results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from tests.bridge.real.clients import called, listed, merged
from tests.bridge.real.direct import Said
from tests.support.real_clients import ERAS, MODES, Inspector, Person, http_client, inspector, unix_client
from tests.support.real_servers import RealServer, payload
from tests.support.real_servers_home import House, Hub

pytestmark = [pytest.mark.local_mcp, pytest.mark.e2e, pytest.mark.xdist_group("real servers"), pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def hub(house: House, servers: dict[str, RealServer]) -> Iterator[Hub]:
    """A hub that has met every server that works; it takes the place of the daemon, if there is one."""
    with house.hub() as hub:
        house.prewarm(servers)
        asyncio.run(met(hub, servers))
        yield hub


async def met(hub: Hub, servers: dict[str, RealServer]) -> None:
    wanted = {f"{server.id}__{server.tool}" for server in servers.values()}
    async with Client(http_client(hub.url, token=hub.token)) as client, client.listen(tools_list_changed=True) as news:
        while not wanted <= (await listed(client)).keys():
            await anext(news)


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_sees_every_tool_of_every_server_and_gets_its_results(
    mode: str, hub: Hub, servers: dict[str, RealServer], said: dict[str, Said]
) -> None:
    async with Client(http_client(hub.url, token=hub.token), mode=mode) as client:
        shown = await listed(client)
        assert {name: tool for name, tool in shown.items() if "__" in name} == merged(said)
        assert "dari_ping" in shown
        for server in servers.values():
            answer = await called(client, f"{server.id}__{server.tool}", server.arguments)
            assert answer == said[server.id].answer


@pytest.mark.parametrize("name", ["everything", "postgres", "git"])
async def test_a_server_has_an_address_of_its_own_and_its_own_names_there(
    name: str, hub: Hub, servers: dict[str, RealServer], said: dict[str, Said]
) -> None:
    server = servers[name]
    async with Client(http_client(hub.at(f"/s/{name}/mcp"), token=hub.token)) as client:
        assert await listed(client) == said[name].tools
        assert await called(client, server.tool, server.arguments) == server.answer


@pytest.mark.parametrize("mode", MODES)
async def test_progress_questions_resources_and_prompts_of_a_handshake_server_reach_clients_of_both_eras(
    mode: str, hub: Hub
) -> None:
    person, told = Person(), []

    async def note(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    async with person.client(http_client(hub.url, token=hub.token), mode) as client:
        operation = ("everything__trigger-long-running-operation", {"duration": 0.2, "steps": 2})
        await client.call_tool(*operation, progress_callback=note)
        assert told == [(1, 2), (2, 2)]
        form = await called(client, "everything__trigger-elicitation-request")
        assert "Name: Minji" in form["content"][1]["text"]
        asked = {"prompt": "2 + 2?", "maxTokens": 5}
        thought = await called(client, "everything__trigger-sampling-request", asked)
        assert json.loads(thought["content"][0]["text"].partition("\n")[2])["content"]["text"] == "4"
        assert "2 + 2?" in person.asked[-1].messages[0].content.text
        # Not the roots of the client: the profile names none.
        roots = await called(client, "everything__get-roots-list")
        assert "no roots are currently configured" in roots["content"][0]["text"]

        uri = "demo://resource/static/document/features.md"
        assert uri in {str(one.uri) for one in (await client.list_resources()).resources}
        assert (await client.read_resource(uri)).contents[0].text.startswith("# Everything")  # type: ignore[union-attr]
        (dynamic,) = (await client.read_resource("demo://resource/dynamic/text/7")).contents
        assert "Resource 7" in dynamic.text  # type: ignore[union-attr]
        prompt = await client.get_prompt("everything__args-prompt", {"city": "대전"})
        assert "대전" in prompt.messages[0].content.text  # type: ignore[union-attr]


async def test_the_unix_socket_of_the_hub_serves_the_same(hub: Hub, servers: dict[str, RealServer]) -> None:
    async with Client(unix_client(hub.socket)) as client:
        for server in servers.values():
            assert await called(client, f"{server.id}__{server.tool}", server.arguments) == server.answer


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_lists_and_calls_through_the_gateway(
    era: str, hub: Hub, servers: dict[str, RealServer], tmp_path: Path
) -> None:
    program, server = inspector(tmp_path), servers["filesystem"]
    target = (hub.url, "--transport", "http", "--header", f"Authorization: Bearer {hub.token}", "--protocol-era", era)
    names = await _names(program, *target)
    assert {f"{one.id}__{one.tool}" for one in servers.values()} <= names
    call = ("--tool-name", f"filesystem__{server.tool}", "--tool-args-json", json.dumps(server.arguments))
    done = await program.run(*target, "--method", "tools/call", *call)
    assert done.exit_code == 0, done.errors
    assert payload(done.output["result"]) == server.answer


async def _names(program: Inspector, *target: str) -> set[str]:
    done = await program.run(*target, "--method", "tools/list")
    assert done.exit_code == 0, done.errors
    return {tool["name"] for tool in done.output["result"]["tools"]}


def test_commands_are_answered_by_the_hub_itself(hub: Hub, house: House, servers: dict[str, RealServer]) -> None:
    server = servers["memory"]
    done = house.remote("call-tool", f"memory/{server.tool}", "--raw", "--params", json.dumps(server.arguments))
    assert (done.code, payload(done.out)) == (0, server.answer)
    status = house.remote("daemon", "status", "--json").json
    states = {one["id"]: one["state"] for one in status["servers"]}
    assert states["memory"] == "ready"
    assert {states["hanging"], states["crashing"]}.isdisjoint({"ready"})
