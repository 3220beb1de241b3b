"""Which era: what the client tries, in which order, and what it makes of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dari.errors import Failed, TimedOut, Unavailable
from dari.mcp.client import Client, RemoteError
from tests.support.demo_server import demo_server
from tests.support.mcp_client import DISCOVERED, INITIALIZED, Json, ScriptedChannel, memory_client

VERSION = "io.modelcontextprotocol/protocolVersion"
Script = Callable[[ScriptedChannel, Json], object]


def answering(**answers: Any) -> Script:
    """`server_discover` and `initialize`: a result (dict), an error code (int), or None for silence."""

    def script(channel: ScriptedChannel, message: Json) -> None:
        answer = answers.get(message.get("method", "").replace("/", "_"))
        if isinstance(answer, dict):
            channel.reply(message, answer)
        elif isinstance(answer, int):
            channel.refuse(message, answer)

    return script


async def test_auto_prefers_the_stateless_era() -> None:
    async with memory_client(demo_server()) as client:
        assert client.era == "stateless"


async def test_a_server_that_does_not_know_discover_gets_the_handshake() -> None:
    channel = ScriptedChannel(answering(server_discover=-32601, initialize=INITIALIZED))
    async with Client(channel) as client:
        assert (client.era, client.version) == ("handshake", "2025-11-25")
        assert client.agreement.server.name == "script"
    assert channel.sent_methods() == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.parametrize("code", [-32600, -32602, -32603, -32000, -32022, 1])
async def test_any_error_to_the_probe_means_the_handshake(code: int) -> None:
    async with Client(ScriptedChannel(answering(server_discover=code, initialize=INITIALIZED))) as client:
        assert client.era == "handshake"


async def test_an_answer_to_the_probe_that_is_no_discovery_means_the_handshake() -> None:
    async with Client(ScriptedChannel(answering(server_discover={}, initialize=INITIALIZED))) as client:
        assert client.era == "handshake"


async def test_a_server_that_names_only_old_revisions_gets_the_handshake() -> None:
    old = {**DISCOVERED, "supportedVersions": ["2025-11-25"]}
    async with Client(ScriptedChannel(answering(server_discover=old, initialize=INITIALIZED))) as client:
        assert client.era == "handshake"


async def test_a_refused_revision_is_tried_once_more_when_the_server_names_it() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        if len(channel.sent) == 1:
            channel.refuse(message, -32022, data={"supported": ["2026-07-28"]})
        else:
            channel.reply(message, DISCOVERED)

    channel = ScriptedChannel(script)
    async with Client(channel) as client:
        assert client.era == "stateless"
    assert [message["params"]["_meta"][VERSION] for message in channel.sent] == ["2026-07-28", "2026-07-28"]


async def test_a_server_of_neither_era_is_refused_with_what_it_speaks() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        channel.refuse(message, -32022, "Unsupported", {"supported": ["2031-01-01"]})

    channel = ScriptedChannel(script)
    with pytest.raises(RemoteError) as caught:
        await Client(channel).open()
    assert caught.value.data == {"supported": ["2031-01-01"]}
    assert channel.sent_methods() == ["server/discover"]


async def test_a_server_that_is_deaf_to_the_probe_gets_the_handshake_too() -> None:
    channel = ScriptedChannel(answering(server_discover=None, initialize=INITIALIZED))
    async with Client(channel, probe_s=0.02) as client:
        assert client.era == "handshake"
    assert "notifications/cancelled" not in channel.sent_methods()


async def test_a_slow_server_of_the_stateless_era_is_still_recognised() -> None:
    probes: list[Json] = []

    def script(channel: ScriptedChannel, message: Json) -> None:
        if message["method"] == "server/discover":
            probes.append(message)
        elif message["method"] == "initialize":
            channel.refuse(message, -32022)
            channel.reply(probes[0], DISCOVERED)

    async with Client(ScriptedChannel(script), probe_s=0.02) as client:
        assert client.era == "stateless"


async def test_a_server_that_dies_of_the_probe_is_started_again_for_the_handshake() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        if message["method"] == "server/discover":
            assert channel.inbox is not None
            channel.inbox.lost(Unavailable("it ended (exit status 1)"))
        elif message["method"] == "initialize":
            channel.reply(message, INITIALIZED)

    channel = ScriptedChannel(script)
    async with Client(channel) as client:
        assert client.era == "handshake"
        assert client.is_open
    assert channel.openings == 2


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_older_revision_is_accepted(version: str) -> None:
    answer = {**INITIALIZED, "protocolVersion": version}
    async with Client(ScriptedChannel(answering(initialize=answer)), mode="handshake") as client:
        assert client.version == version


async def test_an_unknown_revision_is_refused() -> None:
    answer = {**INITIALIZED, "protocolVersion": "1999-01-01"}
    with pytest.raises(Failed, match="1999-01-01"):
        await Client(ScriptedChannel(answering(initialize=answer)), mode="handshake").open()


async def test_mode_stateless_never_shakes_hands() -> None:
    channel = ScriptedChannel(answering(server_discover=-32601, initialize=INITIALIZED))
    with pytest.raises(RemoteError):
        await Client(channel, mode="stateless").open()
    assert channel.sent_methods() == ["server/discover"]


async def test_a_server_that_says_nothing_runs_into_the_time_limit() -> None:
    with pytest.raises(TimedOut, match=r"0\.05 s"):
        await Client(ScriptedChannel(answering()), probe_s=0.01, open_timeout_s=0.05).open()


async def test_what_a_server_prints_instead_of_speaking_is_in_the_error() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        channel.send(b"Usage: server [options]")

    with pytest.raises(TimedOut) as caught:
        await Client(ScriptedChannel(script), probe_s=0.01, open_timeout_s=0.05).open()
    assert "Usage: server [options]" in caught.value.hint


async def test_capabilities_are_declared_only_for_what_is_answered() -> None:
    async def roots() -> list[str]:
        return []

    plain = ScriptedChannel(answering(initialize=INITIALIZED))
    async with Client(plain, mode="handshake"):
        pass
    asked = ScriptedChannel(answering(initialize=INITIALIZED))
    async with Client(asked, mode="handshake", on_roots=roots, capabilities={"experimental": {"x": {}}}):
        pass
    assert plain.sent[0]["params"]["capabilities"] == {}
    assert asked.sent[0]["params"]["capabilities"] == {"roots": {"listChanged": True}, "experimental": {"x": {}}}


async def test_every_stateless_request_carries_the_envelope() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        channel.reply(message, DISCOVERED if message["method"] == "server/discover" else {"content": []})

    channel = ScriptedChannel(script)
    async with Client(channel, info={"name": "me", "version": "2"}) as client:
        await client.set_level("debug")
        await client.call_tool("x", progress=print)
    meta = channel.sent[1]["params"]["_meta"]
    assert meta == {
        VERSION: "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "me", "version": "2"},
        "io.modelcontextprotocol/logLevel": "debug",
        "progressToken": channel.sent[1]["id"],
    }


async def test_ended_tells_why_a_server_went_away() -> None:
    channel = ScriptedChannel(answering(initialize=INITIALIZED))
    async with Client(channel, mode="handshake") as client:
        waiting = asyncio.create_task(client.ended())
        await asyncio.sleep(0)
        assert channel.inbox is not None
        channel.inbox.lost(Unavailable("it fell over"))
        assert (await waiting).message == "it fell over"
        assert not client.is_open
        with pytest.raises(Unavailable, match="it fell over"):
            await client.call_tool("x")


@pytest.mark.parametrize("mode", ["handshake", "stateless"])
async def test_a_server_that_says_too_much_about_itself_is_refused(mode: Any) -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        answer = INITIALIZED if message.get("method") == "initialize" else DISCOVERED
        channel.reply(message, {**answer, "instructions": "x" * 2_000_000})

    channel = ScriptedChannel(script)
    channel._most_bytes = 10_000_000
    with pytest.raises(Failed, match="1,048,576 bytes"):
        await Client(channel, mode=mode).open()
