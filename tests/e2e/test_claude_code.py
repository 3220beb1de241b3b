"""What Claude Code sends on a pipe, byte for byte: a probe of the stateless era, then maybe `initialize` after it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.real_clients import WORKBENCH
from tests.support.wire import Json, StreamWire, demo_process

pytestmark = pytest.mark.e2e

ID = "io.modelcontextprotocol/subscriptionId"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "title": "Claude Code", "version": "2.1.325"},
    "io.modelcontextprotocol/clientCapabilities": {
        "roots": {"listChanged": True},
        "elicitation": {"form": {}, "url": {}},
    },
}
WANTED = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def modern(method: str, request_id: int | str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": META}}


def legacy(method: str, request_id: int | str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


INITIALIZE = legacy(
    "initialize",
    0,
    protocolVersion="2025-11-25",
    capabilities={"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}},
    clientInfo={"name": "claude-code", "version": "2.1.280"},
)


@asynccontextmanager
async def probed(directory: Path) -> AsyncIterator[StreamWire]:
    """A pipe on which the probe, the first list and the listener were answered."""
    async with demo_process(directory, module=WORKBENCH) as server:
        pipe = server.stdio()
        discovered = (await pipe.ask(modern("server/discover", "server-discover-probe-1")))["result"]
        assert "2026-07-28" in discovered["supportedVersions"]
        assert discovered["capabilities"]["tools"] == {"listChanged": True}
        listed = await pipe.ask(modern("tools/list", 1))
        assert "demo_echo" in [tool["name"] for tool in listed["result"]["tools"]]
        acknowledged = await pipe.ask(modern("subscriptions/listen", "listen:0", notifications=WANTED))
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"] == {"notifications": WANTED, "_meta": {ID: "listen:0"}}
        yield pipe


async def test_the_probe_the_list_and_the_listener_are_served_and_changes_are_told(tmp_path: Path) -> None:
    async with probed(tmp_path) as pipe:
        pipe.send(modern("tools/call", 2, name="work_grow", arguments={}))
        messages = [await pipe.receive(), await pipe.receive()]
        (told,) = [message for message in messages if "method" in message]
        (reply,) = [message for message in messages if "id" in message]
        assert told["method"] == "notifications/tools/list_changed"
        assert told["params"]["_meta"] == {ID: "listen:0"}
        assert reply["result"]["resultType"] == "complete"


async def test_initialize_after_the_probe_on_the_same_pipe_is_answered(tmp_path: Path) -> None:
    async with probed(tmp_path) as pipe:
        agreed = (await pipe.ask(INITIALIZE))["result"]
        assert agreed["protocolVersion"] == "2025-11-25"
        pipe.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = (await pipe.ask(legacy("tools/list", 1)))["result"]
        assert "resultType" not in listed
        called = await pipe.ask(legacy("tools/call", 2, name="demo_echo", arguments={"text": "hi"}))
        assert called["result"]["structuredContent"] == {"text": "hi", "times": 1}
        assert (await pipe.ask(modern("tools/call", 3, name="demo_size", arguments={"text": "abc"})))["result"][
            "resultType"
        ] == "complete"


async def test_both_eras_on_one_pipe_hear_of_a_change(tmp_path: Path) -> None:
    async with probed(tmp_path) as pipe:
        await pipe.ask(INITIALIZE)
        pipe.send(legacy("tools/call", 4, name="work_grow", arguments={}))
        messages = [await pipe.receive() for _ in range(3)]
        told = [message for message in messages if message.get("method") == "notifications/tools/list_changed"]
        assert sorted("params" in message for message in told) == [False, True]


async def test_a_question_of_a_stateless_call_is_answered_by_calling_again(tmp_path: Path) -> None:
    async with probed(tmp_path) as pipe:
        asked = (await pipe.ask(modern("tools/call", 5, name="demo_greet", arguments={})))["result"]
        assert asked["resultType"] == "input_required"
        answers = {"who": {"action": "accept", "content": {"name": "Minji"}}}
        retry = modern(
            "tools/call",
            6,
            name="demo_greet",
            arguments={},
            inputResponses=answers,
            requestState=asked["requestState"],
        )
        assert (await pipe.ask(retry))["result"]["content"][0]["text"] == "hello Minji"
