"""Servers that bend the rules, as real ones do."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import DecodeError, Raw

from dari.core.content import TextContent
from dari.errors import Failed, TimedOut
from dari.mcp.client import Client, RemoteError
from dari.mcp.client.callbacks import MAX_REQUESTS, Elicitation, Elicited
from dari.mcp.client.decode import decode_incoming
from dari.mcp.client.results import CallResult, UnknownBlock
from dari.rpc.codec import MAX_BATCH_MESSAGES, decode_any, decode_batch
from tests.support.mcp_client import Json, ScriptedChannel, handshake_script
from tests.support.waiting import until


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


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b"a\xff\xfeb", "a\ufffd\ufffdb"),
        (b"a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"),
        (b"a\\ud83db", "a\ufffdb"),
        (b"a\x00\tb", "a\x00\tb"),
    ],
    ids=["not UTF-8", "a surrogate in UTF-8", "half a pair", "control characters"],
)
async def test_text_that_breaks_json_is_read_all_the_same(text: bytes, read: str) -> None:
    """A program that cuts text by bytes or by UTF-16 units makes such text; our own client could not read it."""
    result = await called(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' + text + b'"}]}}')
    assert result.text == read


async def test_numbers_that_json_does_not_have_are_null() -> None:
    result = await called(
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":NaN,"b":-Infinity}}}'
    )
    assert result.structured_content == {"a": None, "b": None}


async def test_text_and_numbers_that_break_json_are_read_together() -> None:
    result = await called(
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":NaN,"b":"x\xed\xa0\x80y"}}}'
    )
    assert result.structured_content == {"a": None, "b": "x\ufffd\ufffd\ufffdy"}


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
async def test_a_value_on_a_line_of_its_own_stays_part_of_its_answer(end: bytes) -> None:
    """Over HTTP an answer may have many lines. Passed on as it is, one of them would be a message of ours."""
    forged = end + b'{"jsonrpc":"2.0","id":99,"result":{}}' + end
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":' + forged + b"}}"
    result = decode_incoming(answer).result
    assert isinstance(result, Raw) and not set(bytes(result)) & set(b"\r\n")
    assert decode_any(result)["structuredContent"]["id"] == 99


async def test_a_byte_order_mark_is_dropped() -> None:
    assert (await called(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}')).content == []


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":'
        + b"[" * 100_000
        + b"]" * 100_000
        + b"}}",
        b'{"result":{"content":[' + b'{"a"}' + b']},"jsonrpc":"2.0","id":%d}',
    ],
    ids=["nested too deeply", "malformed"],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(answer: bytes) -> None:
    with pytest.raises(Failed, match="is not JSON"):
        await called(answer)


async def test_a_request_that_the_server_prints_is_not_taken_for_its_answer() -> None:
    echo = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x...'

    def script(channel: ScriptedChannel, message: Json) -> None:
        if "id" in message:
            channel.send(echo % message["id"])
            channel.reply(message, {"content": []})

    async with Client(ScriptedChannel(handshake_script(script)), mode="handshake") as client:
        assert (await client.call_tool("x")).content == []


@pytest.mark.parametrize("cursor", [7, {"page": 2}, ["x"]])
async def test_a_cursor_of_any_shape_is_given_back(cursor: object) -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        if message["method"] == "tools/list":
            given = (message.get("params") or {}).get("cursor")
            tool = {"name": "first" if given is None else "second", "inputSchema": {"type": "object"}}
            assert given in (None, cursor)
            channel.reply(message, {"tools": [tool]} | ({"nextCursor": cursor} if given is None else {}))

    async with Client(ScriptedChannel(handshake_script(script)), mode="handshake") as client:
        assert [tool.name for tool in await client.list_tools()] == ["first", "second"]


@pytest.mark.parametrize(
    "more", [b'"ttlMs":1e999', b'"ttlMs":1e308', b'"ttlMs":' + b"9" * 400, b'"nextCursor":false', b'"cacheScope":{}']
)
async def test_a_list_is_read_whatever_stands_beside_it(more: bytes) -> None:
    tool = b'{"name":"x","inputSchema":{"type":"object"}}'

    def script(channel: ScriptedChannel, message: Json) -> None:
        if message["method"] == "tools/list":
            channel.send(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[%b],%b}}' % (message["id"], tool, more))

    async with Client(ScriptedChannel(handshake_script(script)), mode="handshake") as client:
        listed = await client.listing("tools")
    assert len(listed.items) == 1 and (listed.ttl_ms or 0) < 1 << 63


async def test_a_batch_is_taken_apart() -> None:
    notice = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    result = await called(b"[" + notice + b',{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}]')
    assert result.content == []


@pytest.mark.parametrize("part", [b"0", b"{}"])
async def test_a_batch_of_a_million_parts_is_not_taken_apart(part: bytes) -> None:
    client = Client(channel := ScriptedChannel(handshake_script(lambda _, message: None)), mode="handshake")
    async with client:
        conversation = client._session.conversation
        conversation.receive(b"[" + b",".join([part] * 1_000_000) + b"]")
        assert len(conversation.noise) == 1 and channel.sent_methods() == ["initialize"]
    with pytest.raises(DecodeError):
        decode_batch(b"[" + b",".join([b"{}"] * (MAX_BATCH_MESSAGES + 1)) + b"]")
    assert len(decode_batch(b"[" + b",".join([b"{}"] * MAX_BATCH_MESSAGES) + b"]")) == MAX_BATCH_MESSAGES


async def test_a_question_with_the_id_of_an_open_one_is_refused_and_none_outlives_the_client() -> None:
    asked: list[str] = []
    ended: list[str] = []

    async def on_elicit(question: Elicitation) -> Elicited:
        asked.append(question.message)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(question.message)
        raise AssertionError

    channel = ScriptedChannel(handshake_script(lambda _, message: None))
    async with Client(channel, mode="handshake", on_elicit=on_elicit):
        for number in range(3):
            params = {"message": str(number), "requestedSchema": {"type": "object", "properties": {}}}
            channel.send({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
        await until(lambda: len([one for one in channel.sent if "error" in one]) == 2)
        assert asked == ["0"]
    assert ended == ["0"]


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


async def test_questions_that_are_taken_back_at_once_take_no_place_of_others() -> None:
    """Question and cancellation come in one read: the task of the question ends before its first step."""

    async def on_elicit(question: Elicitation) -> Elicited:
        return Elicited("decline")

    def asked(number: int) -> bytes:
        return b'{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"?"}}' % number

    channel = ScriptedChannel(handshake_script(lambda _, message: None))
    async with Client(channel, mode="handshake", on_elicit=on_elicit):
        for number in range(MAX_REQUESTS):
            taken_back = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}' % number
            channel.send(asked(number) + b"\n" + taken_back)
        for _ in range(5):  # tasks end a turn after they were cancelled
            await asyncio.sleep(0)
        channel.send(asked(0))
        await until(lambda: "id" in channel.sent[-1] and "method" not in channel.sent[-1])
    assert channel.sent[-1]["result"] == {"action": "decline"}


async def test_a_server_that_takes_back_a_question_of_its_own_ends_no_call_of_the_same_number() -> None:
    """Both sides count from one. The answer to its question may cross the cancellation."""

    def script(channel: ScriptedChannel, message: Json) -> None:
        if message.get("method") == "tools/call":
            params = {"requestId": message["id"], "reason": "timed out"}
            channel.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            channel.reply(message, {"content": [{"type": "text", "text": "done"}]})

    async with Client(ScriptedChannel(handshake_script(script)), mode="handshake") as client:
        assert (await client.call_tool("x")).text == "done"
