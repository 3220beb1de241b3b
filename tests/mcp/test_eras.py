"""Both eras on one link, decided message by message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.demo_server import demo_server
from tests.support.mcp_server import STATELESS, VERSIONS, Rig, ready, request, text_of
from tests.support.wire import META, MemoryWire, call, stateless

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"


async def test_discover_tells_versions_capabilities_and_who_we_are() -> None:
    result = (await Rig().ask(stateless(request("server/discover"))))["result"]
    assert result["resultType"] == "complete"
    assert result["supportedVersions"] == [*VERSIONS, STATELESS]
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "demo", "version": "1"}
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private")


async def test_discover_then_initialize_on_one_link_both_work() -> None:
    rig = Rig()
    discovered = await rig.ask(stateless(request("server/discover", "server-discover-probe-1")))
    assert STATELESS in discovered["result"]["supportedVersions"]
    assert (await rig.agree("2025-11-25"))["protocolVersion"] == "2025-11-25"
    assert "resultType" not in (await rig.ask(request("tools/list")))["result"]


async def test_initialize_then_discover_on_one_link_both_work() -> None:
    rig = await ready("2024-11-05")
    assert "result" in await rig.ask(stateless(request("server/discover")))
    assert "resultType" not in (await rig.ask(request("tools/list")))["result"]
    assert (await rig.ask(stateless(request("tools/list"))))["result"]["resultType"] == "complete"


async def test_each_message_gets_the_errors_of_its_own_era() -> None:
    rig = await ready("2024-11-05")
    old = await rig.ask(call("demo_missing"))
    new = await rig.ask(stateless(call("demo_missing")))
    assert old["error"]["code"] == new["result"]["_meta"]["dari/error"]["code"] == -32004
    unknown = request("resources/read", uri="demo://nothing")
    assert (await rig.ask(unknown))["error"]["code"] == -32002
    assert (await rig.ask(stateless(unknown)))["error"]["code"] == -32602


async def test_a_stateless_request_needs_no_handshake_and_leaves_none_behind() -> None:
    rig = Rig()
    assert text_of(await rig.ask(stateless(call("demo_size", text="abc")))) == "3"
    assert (await rig.ask(call("demo_size", text="abc")))["error"]["code"] == -32600


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
async def test_what_the_stateless_era_removed_is_not_found(method: str) -> None:
    reply = await Rig().ask(stateless(request(method, level="info", uri="demo://note", protocolVersion="2025-11-25")))
    assert (reply["error"]["code"], reply["error"]["data"]) == (-32601, {"method": method})


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
async def test_what_the_stateless_era_added_is_not_found_in_a_session(method: str) -> None:
    rig = await ready()
    assert (await rig.ask(request(method, notifications={})))["error"]["code"] == -32601


@pytest.mark.parametrize("version", ["2025-11-25", "2099-01-01", ""])
async def test_an_envelope_with_another_version_is_refused_with_the_ones_we_speak(version: str) -> None:
    meta = {VERSION_KEY: version, CAPABILITIES_KEY: {}}
    reply = await Rig().ask(request("tools/list", _meta=meta))
    assert reply["error"]["code"] == -32022
    assert reply["error"]["data"] == {"supported": [*VERSIONS, STATELESS], "requested": version}


async def test_an_envelope_without_capabilities_is_refused() -> None:
    reply = await Rig().ask(request("tools/list", _meta={VERSION_KEY: STATELESS}))
    assert reply["error"]["code"] == -32602
    assert CAPABILITIES_KEY in reply["error"]["message"]


@pytest.mark.parametrize("junk", [5, "x", [], None, True])
async def test_capabilities_of_the_wrong_kind_count_as_none(junk: Any) -> None:
    meta = {**META, CAPABILITIES_KEY: junk}
    rig = Rig()
    assert "result" in await rig.ask(request("tools/list", _meta=meta))
    asked = await rig.ask(request("tools/call", name="demo_greet", _meta=meta))
    assert asked["error"]["code"] == -32021


async def test_strict_refuses_the_stateless_era() -> None:
    reply = await MemoryWire(demo_server(strict=True)).ask(stateless(request("server/discover")))
    assert (reply["error"]["code"], reply["error"]["data"]) == (-32602, {"supported": ["2024-11-05"]})


@pytest.mark.parametrize(
    ("message", "scope_ttl"),
    [
        (request("tools/list"), 60_000),
        (request("resources/list"), 60_000),
        (request("resources/templates/list"), 60_000),
        (request("prompts/list"), 60_000),
        (request("resources/read", uri="demo://note"), 0),
    ],
)
async def test_what_a_client_may_cache_says_for_how_long(message: dict[str, Any], scope_ttl: int) -> None:
    result = (await Rig().ask(stateless(message)))["result"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", scope_ttl, "private")


async def test_every_stateless_result_says_its_kind_first() -> None:
    reference = {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": ""}}
    for message in (
        call("demo_echo", text="a"),
        call("demo_quick", text="a"),
        call("demo_broken"),
        request("prompts/get", name="letter", arguments={"to": "x"}),
        request("completion/complete", **reference),
    ):
        result = (await Rig().ask(stateless(message)))["result"]
        assert next(iter(result.items())) == ("resultType", "complete")
