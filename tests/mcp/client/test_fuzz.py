"""Whatever a server sends, the client goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dari.errors import DariError
from dari.mcp.client import Client
from tests.support.mcp_client import Json, ScriptedChannel, handshake_script, say_yes

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(
    [
        "notifications/progress",
        "notifications/message",
        "notifications/cancelled",
        "notifications/tools/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
        "ping",
        "x",
    ]
)
params = values | st.fixed_dictionaries(
    {},
    optional={
        "progressToken": values,
        "progress": values,
        "requestId": values,
        "uri": values,
        "level": values,
        "message": values,
        "_meta": values | st.fixed_dictionaries({"io.modelcontextprotocol/subscriptionId": values}),
    },
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": values,
        "id": values,
        "method": methods | values,
        "params": params,
        "result": values,
        "error": values,
    },
)
lines = (
    messages.map(lambda message: json.dumps(message).encode())
    | st.binary(max_size=60)
    | values.map(lambda value: json.dumps(value).encode())
)


@settings(max_examples=300, deadline=None)
@given(st.lists(lines, max_size=6))
def test_a_client_survives_any_lines(noise: list[bytes]) -> None:
    async def run() -> None:
        def script(channel: ScriptedChannel, message: Json) -> None:
            if message.get("method") == "tools/call":
                for line in noise:
                    channel.send(line.replace(b"\n", b" "))
                channel.reply(message, {"content": []})

        channel = ScriptedChannel(handshake_script(script))
        events: list[Any] = []
        async with Client(channel, mode="handshake", on_elicit=say_yes, on_event=events.append) as client:
            try:
                await client.call_tool("x", progress=events.append)
            except DariError:
                pass  # the noise answered the call, or took it back
            try:
                await client.call_tool("x", timeout_s=5)
            except DariError as error:
                assert error.name != "timed_out"
            assert client.is_open
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())
