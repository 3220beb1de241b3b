"""The stateless era over HTTP: headers that must match the body, statuses, disconnects, subscriptions."""

from __future__ import annotations

import json

import pytest

from tests.support.transports import JSON_ONLY, Events, running
from tests.support.waiting import turn_until
from tests.support.wire import Json, call, envelope_headers, stateless

VERSION = "2026-07-28"
ECHO = stateless(call("demo_echo", 1, text="x"))
READ = stateless({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "demo://note"}})
GET_PROMPT = stateless(
    {"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "letter", "arguments": {"to": "one"}}}
)
DISCOVER = stateless({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})
LISTEN = stateless(
    {
        "jsonrpc": "2.0",
        "id": "l",
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}},
    }
)


@pytest.mark.parametrize("message", [ECHO, READ, GET_PROMPT, DISCOVER])
async def test_headers_that_match_the_body_are_served_without_a_session(message: Json) -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(message)
        assert (reply.status, reply.json()["result"]["resultType"]) == (200, "complete")
        assert "mcp-session-id" not in reply.headers
        assert len(rig.hub.sessions) == 0


WRONG_HEADERS: list[tuple[Json, dict[str, str]]] = [
    (ECHO, {"MCP-Protocol-Version": ""}),
    (ECHO, {"MCP-Protocol-Version": "2025-11-25"}),
    (ECHO, {"MCP-Protocol-Version": "2099-01-01"}),
    (ECHO, {"Mcp-Method": ""}),
    (ECHO, {"Mcp-Method": "tools/list"}),
    (ECHO, {"Mcp-Method": "TOOLS/CALL"}),
    (ECHO, {"Mcp-Name": ""}),
    (ECHO, {"Mcp-Name": "demo_quick"}),
    (ECHO, {"Mcp-Name": "=?base64?!!!?="}),
    (READ, {"Mcp-Name": "demo://blob"}),
    (GET_PROMPT, {"Mcp-Name": "other"}),
    (stateless(call("demo_routed", region="eu")), {}),
    (stateless(call("demo_routed", region="eu")), {"Mcp-Param-Region": "us"}),
    (stateless(call("demo_routed", region="eu")), {"Mcp-Param-Region": "=?base64?ZXU?="}),
]


@pytest.mark.parametrize(("message", "headers"), WRONG_HEADERS)
async def test_a_header_that_differs_from_the_body_is_400(message: Json, headers: dict[str, str]) -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(message, **headers)
        assert (reply.status, reply.json()["error"]["code"], reply.json()["id"]) == (400, -32020, 1)
        assert len(rig.server.calls) == 0


@pytest.mark.parametrize("region", ["eu", "=?base64?ZXU=?=", "  eu  "])
async def test_a_mirrored_argument_may_be_written_plain_or_in_base64(region: str) -> None:
    async with running() as rig:
        message = stateless(call("demo_routed", region="eu"))
        reply = await (await rig.http()).post(message, **{"Mcp-Param-Region": region})
        assert (reply.status, reply.json()["result"]["content"][0]["text"]) == (200, "eu:0")


async def test_white_space_around_a_header_is_not_part_of_it() -> None:
    async with running() as rig:
        assert (await (await rig.http()).post(ECHO, **{"Mcp-Name": "demo_echo \t "})).status == 200


async def test_a_name_that_is_no_ascii_travels_in_base64() -> None:
    async with running() as rig:
        message = stateless(call("없음"))
        headers = {**envelope_headers(message), "Mcp-Name": "=?base64?7JeG7J2M?="}
        reply = await (await rig.http()).request("POST", "/mcp", json.dumps(message).encode(), headers)
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32602)
        assert "unknown tool" in reply.json()["error"]["message"]


async def test_an_unknown_version_is_400_and_names_the_known_ones() -> None:
    async with running() as rig:
        wire = await rig.http()
        message = json.loads(json.dumps(ECHO).replace(VERSION, "2099-01-01"))
        reply = await wire.post(message)
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32022)
        assert VERSION in reply.json()["error"]["data"]["supported"]
        reply = await wire.post(call("demo_echo", text="x"), **{"MCP-Protocol-Version": "2099-01-01"})
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32022)


async def test_the_header_alone_does_not_make_a_request_of_this_era() -> None:
    async with running() as rig:
        headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "demo_echo"}
        reply = await (await rig.http()).post(call("demo_echo", text="x"), **headers)
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32602)


async def test_an_unknown_method_is_404() -> None:
    async with running() as rig:
        wire = await rig.http()
        for method in ("no/such", "ping", "initialize", "logging/setLevel"):
            reply = await wire.post(stateless({"jsonrpc": "2.0", "id": 1, "method": method}))
            assert (reply.status, reply.json()["error"]["code"]) == (404, -32601), method


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_no_stream_and_no_session_to_end(method: str) -> None:
    async with running() as rig:
        reply = await (await rig.http()).request(method, "/mcp", headers={"MCP-Protocol-Version": VERSION})
        assert (reply.status, reply.headers["allow"]) == (405, "POST")


async def test_a_missing_capability_is_400_and_names_it() -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(stateless(call("demo_greet")))
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32021)
        assert reply.json()["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}


async def test_a_failing_tool_is_200_with_an_error_inside() -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(stateless(call("demo_missing")))
        assert (reply.status, reply.json()["result"]["isError"]) == (200, True)


async def test_an_unreadable_body_is_400() -> None:
    async with running() as rig:
        headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call"}
        reply = await (await rig.http()).post(b"{nonsense", **headers)
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32700)


async def test_a_strict_server_does_not_know_this_era() -> None:
    async with running(strict=True) as rig:
        reply = await (await rig.http()).post(DISCOVER)
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32602)
        assert reply.json()["error"]["data"] == {"supported": ["2024-11-05"]}


async def test_a_client_that_disconnects_cancels_its_stateless_call() -> None:
    async with running() as rig:
        wire = await rig.http()
        message = stateless(call("demo_hang", 1))
        wire.send("POST", "/mcp", json.dumps(message).encode(), envelope_headers(message))
        await rig.tools.started.wait()
        wire.writer.close()
        await rig.tools.cancelled.wait()
        await turn_until(lambda: len(rig.server.calls) == len(rig.endpoint.open) == 0)


async def test_a_client_that_disconnects_does_not_cancel_the_call_of_its_session() -> None:
    async with running() as rig:
        wire = await rig.session()
        other = await rig.again(wire)
        other.send("POST", "/mcp", json.dumps(call("demo_hang", 1)).encode())
        await rig.tools.started.wait()
        other.writer.close()
        await turn_until(lambda: not rig.endpoint.open)
        assert len(rig.server.calls) == 1
        rig.tools.release.set()
        await turn_until(lambda: len(rig.server.calls) == 0)
        assert not rig.tools.cancelled.is_set()


async def test_a_listener_is_told_changes_until_it_disconnects() -> None:
    async with running() as rig:
        wire = await rig.http()
        wire.send("POST", "/mcp", json.dumps(LISTEN).encode(), envelope_headers(LISTEN))
        assert (await wire.head())[1]["content-type"] == "text/event-stream"
        events = Events(wire)
        assert (await events.message())["method"] == "notifications/subscriptions/acknowledged"
        rig.server.registry.remove_tools("none")
        assert (await events.message())["method"] == "notifications/tools/list_changed"
        wire.writer.close()
        await turn_until(lambda: not rig.server.listening and not rig.endpoint.open)


async def test_a_listener_that_takes_no_events_is_406() -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(LISTEN, **JSON_ONLY)
        assert reply.status == 406
        assert not rig.server.listening
