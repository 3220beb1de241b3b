"""Servers that bend the rules, as real ones do."""

from __future__ import annotations

import pytest

from dari.core.content import TextContent
from dari.errors import Failed, TimedOut
from dari.mcp.client import Client, RemoteError
from dari.mcp.client.results import CallResult, UnknownBlock
from tests.support.mcp_client import Json, ScriptedChannel, handshake_script


async def called(answer: bytes) -> CallResult:
    """Call a tool of a server that answers with these bytes (`%d` is the id)."""

    def script(channel: ScriptedChannel, message: Json) -> None:
        if "id" in message:
            channel.send(answer % message["id"] if b"%d" in answer else answer)

    channel = ScriptedChannel(handshake_script(script))
    async with Client(channel, mode="handshake", timeout_s=0.5) as client:
        return await client.call_tool("x")


async def test_an_id_that_comes_back_as_a_string_is_recognised() -> None:
    result = await called(b'{"jsonrpc":"2.0","id":"%d","result":{"content":[]}}')
    assert result.content == []


async def test_nulls_where_the_schema_has_none_count_as_absent() -> None:
    content = b'[{"type":"text","text":"x","annotations":null}]'
    body = b'{"content":' + content + b',"isError":null,"structuredContent":null,"_meta":null}'
    result = await called(b'{"jsonrpc":"2.0","id":%d,"error":null,"result":' + body + b"}")
    assert result.is_error is False
    assert result.structured_content is None
    assert result.content == [TextContent(text="x")]


async def test_content_of_an_unknown_kind_is_kept() -> None:
    result = await called(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"hologram","x":1}]}}')
    assert result.content == [UnknownBlock({"type": "hologram", "x": 1})]


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":%d,"error":{"message":"no code"}}',
        b'{"jsonrpc":"2.0","id":%d,"error":"text"}',
        b'{"jsonrpc":"2.0","id":%d}',
        b'{"jsonrpc":"2.0","id":%d,"result":null,"error":{"code":"x"}}',
    ],
)
async def test_an_error_of_any_shape_reaches_its_caller(answer: bytes) -> None:
    with pytest.raises(RemoteError):
        await called(answer)


async def test_a_batch_is_taken_apart() -> None:
    notice = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    result = await called(b"[" + notice + b',{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}]')
    assert result.content == []


async def test_an_answer_that_comes_late_is_dropped() -> None:
    late: list[Json] = []

    def script(channel: ScriptedChannel, message: Json) -> None:
        if message["method"] == "tools/call" and message["params"]["name"] == "slow":
            late.append(message)
        elif message["method"] == "tools/call":
            channel.reply(late[0], {"content": [{"type": "text", "text": "late"}]})
            channel.reply(message, {"content": [{"type": "text", "text": "mine"}]})

    channel = ScriptedChannel(handshake_script(script))
    async with Client(channel, mode="handshake") as client:
        with pytest.raises(TimedOut):
            await client.call_tool("slow", timeout_s=0.02)
        assert (await client.call_tool("quick")).text == "mine"
    assert "notifications/cancelled" in channel.sent_methods()


async def test_a_list_whose_cursor_repeats_is_refused() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        channel.reply(message, {"tools": [{"name": "x", "inputSchema": {}}], "nextCursor": "again"})

    async with Client(ScriptedChannel(handshake_script(script)), mode="handshake") as client:
        with pytest.raises(Failed):
            await client.list_tools()


async def test_a_list_that_the_server_does_not_offer_is_empty() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        channel.refuse(message, -32601)

    async with Client(ScriptedChannel(handshake_script(script)), mode="handshake") as client:
        assert await client.list_prompts() == []
