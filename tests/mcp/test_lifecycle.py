"""`initialize` agrees on a version; until then only `ping` is served."""

from __future__ import annotations

from typing import Any

import pytest

from dari.core.context import LEVELS
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from tests.support.demo_server import demo_server
from tests.support.mcp_server import LATEST, VERSIONS, Rig, notification, ready, request
from tests.support.wire import MemoryWire, initialize


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_version_we_speak_is_agreed(version: str) -> None:
    assert (await Rig().agree(version))["protocolVersion"] == version


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", "2099-12-31", "", "latest"])
async def test_any_other_version_is_answered_with_our_newest_handshake(version: str) -> None:
    assert (await Rig().agree(version))["protocolVersion"] == LATEST


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25", "2026-07-28", "x"])
async def test_strict_agrees_on_2024_11_05_and_nothing_else(version: str) -> None:
    refused = await MemoryWire(demo_server(strict=True)).ask(initialize(version))
    assert refused["error"]["code"] == -32602
    assert refused["error"]["data"] == {"supported": ["2024-11-05"]}
    agreed = await MemoryWire(demo_server(strict=True)).ask(initialize("2024-11-05"))
    assert agreed["result"]["protocolVersion"] == "2024-11-05"


@pytest.mark.parametrize("params", [{}, {"protocolVersion": None}, {"protocolVersion": 20241105}, None])
async def test_strict_names_its_version_also_where_none_can_be_read(params: Any) -> None:
    """Design 000 §5.1: what is not 2024-11-05 is −32602 with `data.supported`."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    refused = await MemoryWire(demo_server(strict=True)).ask(message)
    assert refused["error"] == {
        "code": -32602,
        "message": "Invalid params: unsupported protocol version",
        "data": {"supported": ["2024-11-05"]},
    }


async def test_a_missing_version_is_refused_with_the_known_ones() -> None:
    reply = await Rig().ask(request("initialize", capabilities={}))
    assert reply["error"]["code"] == -32602
    assert all(version in reply["error"]["data"]["hint"] for version in VERSIONS)


async def test_the_reply_says_who_we_are_and_what_we_offer() -> None:
    assert await Rig().agree() == {
        "protocolVersion": LATEST,
        "serverInfo": {"name": "demo", "version": "1"},
        "capabilities": {
            "tools": {"listChanged": True},
            "logging": {},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
        },
    }


async def test_what_the_registry_lacks_is_not_offered_and_instructions_are_told() -> None:
    server = Server(Registry(), Info("bare", "2", title="Bare", website_url="https://x.test"), instructions="Be kind.")
    result = await Rig(server).agree()
    assert result["capabilities"] == {"tools": {"listChanged": True}, "logging": {}}
    assert result["instructions"] == "Be kind."
    assert result["serverInfo"] == {
        "name": "bare",
        "version": "2",
        "title": "Bare",
        "websiteUrl": "https://x.test",
    }


@pytest.mark.parametrize(
    "method", ["tools/list", "tools/call", "resources/list", "prompts/get", "logging/setLevel", "completion/complete"]
)
async def test_before_initialize_everything_but_ping_is_refused(method: str) -> None:
    rig = Rig()
    reply = await rig.ask(request(method, name="demo_quick", level="info"))
    assert reply["error"]["code"] == -32600
    assert "initialize" in reply["error"]["message"]
    assert (await rig.ask(request("ping")))["result"] == {}


async def test_the_notification_that_ends_the_handshake_is_not_answered() -> None:
    rig = await ready()
    rig.send(notification("notifications/initialized"))
    await rig.quiet()


async def test_a_client_may_initialize_again() -> None:
    rig = await ready("2024-11-05")
    await rig.ask(request("resources/subscribe", uri="demo://note"))
    assert (await rig.agree("2025-06-18"))["protocolVersion"] == "2025-06-18"
    rig.server.registry.resource_updated("demo://note")
    await rig.quiet()


@pytest.mark.parametrize("junk", [5, "x", [], None])
async def test_client_info_and_capabilities_of_the_wrong_kind_count_as_none(junk: Any) -> None:
    rig = Rig()
    reply = await rig.ask(request("initialize", protocolVersion=LATEST, capabilities=junk, clientInfo=junk))
    assert reply["result"]["protocolVersion"] == LATEST
    assert rig.wire.session.capabilities == {}


@pytest.mark.parametrize("version", VERSIONS)
async def test_ping_is_answered_with_an_empty_result(version: str) -> None:
    rig = await ready(version)
    assert await rig.ask(request("ping", "p")) == {"jsonrpc": "2.0", "id": "p", "result": {}}


@pytest.mark.parametrize("level", LEVELS)
async def test_every_log_level_can_be_set(level: str) -> None:
    rig = await ready()
    assert (await rig.ask(request("logging/setLevel", level=level)))["result"] == {}
    assert rig.wire.session.log_level == level


@pytest.mark.parametrize("params", [{}, {"level": "loud"}, {"level": ""}, {"level": "INFO"}])
async def test_an_unknown_log_level_is_refused_with_the_known_ones(params: dict[str, Any]) -> None:
    rig = await ready()
    reply = await rig.ask(request("logging/setLevel", **params))
    assert reply["error"]["code"] == -32602
    assert "emergency" in reply["error"]["data"]["hint"]
    assert rig.wire.session.log_level == "info"
