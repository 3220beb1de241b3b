"""`dari mcp`'s half: what the daemon offers appears beside our own tools, and calls pass through both processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dari.bridge.daemon import host
from dari.bridge.gateway.late_relay import LateRelay
from dari.bridge.gateway.search_mode import search_registry
from dari.bridge.gateway.selection import ServerSelection
from dari.bridge.paths import BridgePaths as Ground
from dari.bridge.service import Bridge
from dari.cli.bridged import commands_for, servers_for
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from tests.bridge.gateway.support import EVERYTHING, asked, built_ins, called, demo, lab, replied, seen, text_of
from tests.bridge.gateway.test_questions import SAID, accepted
from tests.bridge.upstream.place import Place
from tests.mcp.support import notification, request
from tests.wires import Json, MemoryWire, initialize, stateless

pytestmark = pytest.mark.local_mcp

ERAS = ["handshake", "stateless"]


class Outlet:
    """Our process: its registry, the relay, and a client on a memory wire."""

    def __init__(self, place: Place, choice: ServerSelection, *, searches: bool = False) -> None:
        self.place = place
        self.full = Registry()
        built_ins(self.full)
        self.server = Server(search_registry(self.full) if searches else self.full, Info(name="dari", version="1"))
        self.relay = LateRelay(
            self.full, choice, around=place.around(), on_log=self.server.log_to_sessions, look_s=0.01
        )
        self.wire = MemoryWire(self.server)
        self.ask = self.wire.ask

    async def client(self, **capabilities: Any) -> MemoryWire:
        wire = MemoryWire(self.server)
        await wire.ask(initialize(**capabilities))
        return wire

    async def names(self, kind: str = "tools") -> list[str]:
        reply = await replied(self.wire, stateless(request(f"{kind}/list", "names")))
        return [one["name"] for one in reply["result"][kind]]


@contextlib.asynccontextmanager
async def outlet(place: Place, choice: ServerSelection | None = None, **options: Any) -> AsyncIterator[Outlet]:
    opened = Outlet(place, choice or ServerSelection(), **options)
    opened.relay.start()
    try:
        yield opened
    finally:
        await opened.relay.close()


@contextlib.asynccontextmanager
async def hosted(root: Path) -> AsyncIterator[Bridge]:
    """The daemon's half, in the same process."""
    bridge = Bridge(root / "state")
    async with host(Ground(), bridge, commands_for(bridge), servers_for(bridge)):
        yield bridge


async def test_what_the_daemon_offers_appears_beside_our_own(tmp_path: Path) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, lab(), demo())) as ours:
        names = await ours.names()
        assert {"demo_echo", "lab__add", "demo__demo_echo"} <= set(names)
        assert await ours.names("prompts") == ["lab__hi", "demo__letter"]
        assert text_of(await ours.ask(asked("lab__add", arguments={"a": 1, "b": 2}))) == "3"


async def test_instructions_wait_a_moment_for_a_daemon_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dari.bridge.gateway.late_relay.BRIEF_S", 15.0)
    place = Place(tmp_path, lab())
    async with hosted(tmp_path) as bridge:
        await bridge.view(place.around()).upstream("lab").start()
        async with outlet(place) as ours:
            said = (await ours.ask(initialize()))["result"]
            assert "## lab\nBe kind to the lab." in said["instructions"]
            assert said["protocolVersion"] == "2025-11-25"
            found = (await ours.ask(stateless(request("server/discover"))))["result"]
            assert found["instructions"] == said["instructions"]


async def test_a_choice_is_made_by_the_daemon(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(), demo(), profiles={"few": {"servers": ["lab"]}})
    async with hosted(tmp_path):
        async with outlet(place, ServerSelection(server="lab")) as ours:
            assert "add" in await ours.names()
        async with outlet(place, ServerSelection(profile="few")) as ours:
            assert {name.partition("__")[0] for name in await ours.names() if "__" in name} == {"lab"}


async def test_nothing_is_started_where_no_server_is_named_and_nothing_is_waited_for(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(disabled=True))
    async with outlet(place) as ours:
        assert "demo_echo" in await ours.names()
        assert "instructions" not in (await ours.ask(initialize()))["result"]
        assert not Ground().cli_socket.exists()
        async with hosted(tmp_path):
            wire = await ours.client()
            place.write(lab())
            while (await wire.messages.get()).get("method") != "notifications/tools/list_changed":
                pass
            assert "lab__add" in await ours.names()


@pytest.mark.parametrize("server", ERAS)
@pytest.mark.parametrize("client", ERAS)
async def test_questions_cross_both_processes(tmp_path: Path, server: str, client: str) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, demo(era=server))) as ours:
        await ours.names()
        answers = [accepted(x="a"), accepted(x="b")]
        assert text_of(await questioned(ours, "demo__demo_introduce", answers, client)) == "a and b"
        assert text_of(await questioned(ours, "demo__demo_think", [SAID], client)) == "4"


async def questioned(ours: Outlet, name: str, answers: list[Json], era: str) -> Json:
    if era == "handshake":
        wire = await ours.client(**EVERYTHING)
        wire.send(called(name))
        for answer in answers:
            question = await wire.messages.get()
            wire.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        return await wire.messages.get()
    reply = await ours.ask(asked(name))
    for answer in answers:
        result = reply["result"]
        ((key, _),) = result["inputRequests"].items()
        reply = await ours.ask(asked(name, inputResponses={key: answer}, requestState=result["requestState"]))
    return reply


async def test_a_refusal_of_the_person_is_a_cancel_at_the_server(tmp_path: Path) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, demo())) as ours:
        await ours.names()
        wire = await ours.client(**EVERYTHING)
        wire.send(called("demo__demo_greet"))
        question = await wire.messages.get()
        wire.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no"}})
        assert text_of(await wire.messages.get()) == "nobody (cancel)"


async def test_the_server_knows_what_the_client_declared(tmp_path: Path) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, demo())) as ours:
        await ours.names()
        assert (await ours.ask(asked("demo__demo_greet", {})))["error"]["code"] == -32021


@pytest.mark.parametrize("client", ERAS)
async def test_progress_logs_errors_and_results_are_the_servers(tmp_path: Path, client: str) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, lab(), demo())) as ours:
        await ours.names()
        wire = await ours.client()
        message = request("tools/call", 7, name="demo__demo_count", arguments={"to": 2})
        if client == "stateless":
            message = stateless(message)
            message["params"]["_meta"] |= {"io.modelcontextprotocol/logLevel": "info"}
        message["params"].setdefault("_meta", {})["progressToken"] = "mine"
        wire.send(message)
        heard = []
        while "result" not in (one := await wire.messages.get()):
            heard.append(one)
        assert ("resultType" in one["result"]) is (client == "stateless")
        progress = [each["params"]["progress"] for each in heard if each["method"] == "notifications/progress"]
        assert progress == [1, 2]
        logs = [each["params"]["data"] for each in heard if each["method"] == "notifications/message"]
        assert logs == [{"number": 1}, {"number": 2}]
        refused = called("lab__refuse")
        reply = await replied(wire, stateless(refused) if client == "stateless" else refused)
        assert reply["error"] == {"code": -32123, "message": "not today", "data": {"x": 1}}


async def test_cancelling_reaches_the_server(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(env={"LAB_LOG": str(tmp_path / "lab.log")}))
    async with hosted(tmp_path), outlet(place) as ours:
        await ours.names()
        wire = await ours.client()
        wire.send(called("lab__wait", 5, until=str(tmp_path / "never"), steps=1))
        await seen(lambda: "call wait" in place.noted())
        wire.send(notification("notifications/cancelled", requestId=5))
        await seen(lambda: any(line.startswith("cancelled") for line in place.noted()))


async def test_resources_prompts_and_completions_pass_through(tmp_path: Path) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, lab(), demo())) as ours:
        await ours.names()
        wire = await ours.client()
        note = await replied(wire, request("resources/read", uri="demo://note"))
        assert note["result"] == {"contents": [{"uri": "demo://note", "text": "a note", "mimeType": "text/plain"}]}
        item = await replied(wire, request("resources/read", uri="lab://item/1"))
        assert item["result"]["more"] == 1
        unlisted = await replied(wire, request("resources/read", uri="lab://item/1/2"))
        assert unlisted["result"]["contents"][0]["uri"] == "lab://item/1/2"
        hi = await replied(wire, request("prompts/get", name="lab__hi", arguments={"who": "A"}))
        assert hi["result"]["messages"][0]["content"]["text"] == "hi A"
        ref = {"type": "ref/prompt", "name": "demo__letter"}
        done = await replied(wire, request("completion/complete", ref=ref, argument={"name": "to", "value": "o"}))
        assert done["result"]["completion"]["values"] == ["one"]
        wire.send(request("resources/subscribe", "sub", uri="lab://one"))
        heard = [await wire.messages.get(), await wire.messages.get()]
        assert {one.get("method", "reply") for one in heard} == {"reply", "notifications/resources/updated"}


async def test_search_looks_through_both(tmp_path: Path) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, lab()), searches=True) as ours:
        assert await ours.names() == ["find_tools", "describe_tool", "call_tool"]
        found = await ours.ask(asked("find_tools", arguments={"query": "add two numbers"}))
        assert found["result"]["structuredContent"]["tools"][0]["name"] == "lab__add"
        inner = {"name": "lab__add", "arguments": {"a": 2, "b": 2}}
        assert text_of(await ours.ask(asked("call_tool", arguments=inner))) == "4"


async def test_when_the_daemon_ends_the_next_call_finds_the_next_one(tmp_path: Path) -> None:
    place = Place(tmp_path, lab())
    async with outlet(place) as ours:
        async with hosted(tmp_path):
            assert "lab__add" in await ours.names()
        async with hosted(tmp_path):
            assert text_of(await ours.ask(asked("lab__add", arguments={"a": 1, "b": 2}))) == "3"


async def test_whoever_hosts_the_bridge_next_is_found_without_a_call(tmp_path: Path) -> None:
    place = Place(tmp_path, lab())
    async with outlet(place) as ours:
        async with hosted(tmp_path):
            await ours.names()
            wire = await ours.client()
        place.write(lab(), lab("two"))
        async with hosted(tmp_path):
            while (await wire.messages.get()).get("method") != "notifications/tools/list_changed":
                pass
            assert "two__add" in await ours.names()


async def test_a_call_that_runs_when_the_daemon_ends_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(env={"LAB_LOG": str(tmp_path / "lab.log")}))
    async with outlet(place) as ours:
        async with hosted(tmp_path):
            await ours.names()
            waiting = asyncio.create_task(
                ours.ask(asked("lab__wait", arguments={"until": str(tmp_path / "never"), "steps": 1}))
            )
            await seen(lambda: "call wait" in place.noted())
        assert (await waiting)["result"]["isError"] is True


async def test_tools_found_behind_the_relay_name_their_server_and_are_filtered_by_it(tmp_path: Path) -> None:
    place = Place(tmp_path, lab(), demo(description="Letters and greetings"))
    async with hosted(tmp_path), outlet(place, searches=True) as ours:
        found = await found_tools(ours, query="add two numbers")
        assert (found[0]["name"], found[0]["server"]) == ("lab__add", "lab")
        assert {one["server"] for one in await found_tools(ours, query="echo", limit=50)} >= {"dari", "demo"}
        only = await found_tools(ours, query="echo", server="demo", limit=50)
        assert only[0]["name"] == "demo__demo_echo" and {one["server"] for one in only} == {"demo"}
        by_about = await found_tools(ours, query="greetings", server="Demo")
        assert {one["server"] for one in by_about} == {"demo"}
    async with hosted(tmp_path), outlet(place, ServerSelection(server="lab"), searches=True) as ours:
        assert {one["server"] for one in await found_tools(ours, query="add", server="lab")} == {"lab"}


async def test_a_label_for_the_relay_reaches_no_client(tmp_path: Path) -> None:
    async with hosted(tmp_path), outlet(Place(tmp_path, lab())) as ours:
        await ours.names()
        listed = (await replied(ours.wire, stateless(request("tools/list"))))["result"]["tools"]
        assert "dari/server" not in str(listed)


async def found_tools(ours: Outlet, **arguments: object) -> list[Json]:
    reply = await ours.ask(asked("find_tools", arguments=arguments))
    return list(reply["result"]["structuredContent"]["tools"])
