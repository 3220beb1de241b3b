"""Requests and their answers, in memory, in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from dari.core.content import ImageContent, TextContent
from dari.core.context import Progress
from dari.errors import Failed, TimedOut, Unavailable
from dari.mcp.client import RemoteError
from tests.support.demo_server import DemoTools, demo_server
from tests.support.mcp_client import ERAS, memory_client

pytestmark = pytest.mark.parametrize("mode", ERAS)


async def test_a_tool_returns_text_and_structure(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        result = await client.call_tool("demo_echo", {"text": "hi", "times": 2})
    assert client.is_open is False
    assert result.structured_content == {"text": "hihi", "times": 2}
    assert result.content == [TextContent(text='{"text":"hihi","times":2}')]
    assert result.text == '{"text":"hihi","times":2}'
    assert result.is_error is False
    result.raise_if_error()


async def test_the_server_introduces_itself(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        assert client.era == mode
        assert client.version == {"handshake": "2025-11-25", "stateless": "2026-07-28"}[mode]
        assert client.agreement.server.name == "demo"
        assert client.agreement.capabilities["tools"] == {"listChanged": True}


async def test_an_image_comes_back_as_an_image(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        result = await client.call_tool("demo_picture")
    assert result.content == [ImageContent.of(b"\x89PNG", "image/png")]
    assert result.structured_content is None


async def test_a_failure_of_the_tool_is_a_result(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        result = await client.call_tool("demo_missing")
    assert result.is_error
    assert result.meta["dari/error"]["name"] == "not_found"
    with pytest.raises(Failed, match="pane 7 does not exist"):
        result.raise_if_error()


async def test_a_fault_of_the_protocol_is_a_remote_error(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        with pytest.raises(RemoteError, match="unknown tool") as caught:
            await client.call_tool("nobody")
    assert caught.value.remote_code == -32602
    assert caught.value.hint == "tools/list shows the tools there are"


async def test_every_list_is_read(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        resources = [resource.uri for resource in await client.list_resources()]
        templates = [template.uri_template for template in await client.list_templates()]
        prompts = await client.list_prompts()
    assert tools["demo_echo"].input_schema["required"] == ["text"]
    assert tools["demo_echo"].output_schema is not None
    assert tools["demo_size"].output_schema is None
    assert resources == ["demo://note", "demo://blob"]
    assert templates == ["demo://item/{id}"]
    assert (prompts[0].name, prompts[0].arguments[0].name, prompts[0].arguments[0].required) == ("letter", "to", True)


async def test_a_long_list_is_read_page_by_page(mode: Any) -> None:
    server = demo_server()
    server.lists._page_size = 2
    async with memory_client(server, mode=mode) as client:
        listing = await client.listing("tools")
        assert len(listing.items) == len(server.registry.tools)
        assert len(await client.list_tools()) == len(listing.items)
    assert listing.ttl_ms == (60_000 if mode == "stateless" else None)


async def test_resources_are_read_as_text_and_as_bytes(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        note = await client.read_resource("demo://note")
        blob = await client.read_resource("demo://blob")
        item = await client.read_resource("demo://item/7")
    assert note.contents[0].text == "a note"
    assert blob.contents[0].blob == "AAE="
    assert item.contents[0].text == "item 7"


async def test_a_prompt_is_filled_in(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        prompt = await client.get_prompt("letter", {"to": "Ada"})
    assert prompt.messages[0].role == "user"
    assert prompt.messages[0].content == TextContent(text="Dear Ada")


async def test_an_argument_is_completed(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        of_prompt = await client.complete("to", "t", prompt="letter")
        of_template = await client.complete("id", "o", template="demo://item/{id}")
    assert of_prompt.values == ["two", "three"]
    assert of_template.values == ["one"]


async def test_ping_is_answered(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        await client.ping()


async def test_a_raw_request_returns_what_the_server_wrote(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        raw = await client.request("tools/call", b'{"name":"demo_echo","arguments":{"text":"hi"}}')
        same = await client.request("tools/call", {"name": "demo_echo", "arguments": {"text": "hi"}})
        tagged = await client.request(
            "tools/call", msgspec.Raw(b' { "_meta" : {"x":1}, "name":"demo_echo","arguments":{"text":"hi"}} ')
        )
    assert msgspec.json.decode(raw)["structuredContent"] == {"text": "hi", "times": 1}
    assert bytes(raw) == bytes(same) == bytes(tagged)


async def test_progress_arrives_in_order_before_the_result(mode: Any) -> None:
    seen: list[Progress] = []
    async with memory_client(demo_server(), mode=mode) as client:
        result = await client.call_tool("demo_count", {"to": 3}, progress=seen.append)
        assert [(report.progress, report.total, report.message) for report in seen] == [
            (1, 3, "step 1"),
            (2, 3, "step 2"),
            (3, 3, "step 3"),
        ]
    assert result.text == "counted to 3"


async def test_a_progress_callback_that_raises_does_not_harm_the_call(mode: Any) -> None:
    def raise_(report: Progress) -> None:
        raise RuntimeError("callback")

    async with memory_client(demo_server(), mode=mode) as client:
        assert (await client.call_tool("demo_count", progress=raise_)).text == "counted to 3"


async def test_cancelling_the_caller_cancels_the_call_on_the_server(mode: Any) -> None:
    tools = DemoTools()
    async with memory_client(demo_server(tools), mode=mode) as client:
        task = asyncio.create_task(client.call_tool("demo_hang"))
        await tools.started.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        await tools.cancelled.wait()
        assert (await client.call_tool("demo_echo", {"text": "alive"})).is_error is False


async def test_a_time_limit_raises_and_cancels_on_the_server(mode: Any) -> None:
    tools = DemoTools()
    async with memory_client(demo_server(tools), mode=mode) as client:
        with pytest.raises(TimedOut, match=r"tools/call.*0\.05 s"):
            await client.call_tool("demo_hang", timeout_s=0.05)
        await tools.cancelled.wait()


async def test_a_slow_call_does_not_delay_the_others(mode: Any) -> None:
    tools = DemoTools()
    async with memory_client(demo_server(tools), mode=mode) as client:
        slow = asyncio.create_task(client.call_tool("demo_hang"))
        await tools.started.wait()
        assert (await client.call_tool("demo_echo", {"text": "quick"})).text
        tools.release.set()
        assert (await slow).text == "released"


async def test_two_hundred_calls_at_once_get_their_own_answers(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        results = await asyncio.gather(*(client.call_tool("demo_echo", {"text": str(n)}) for n in range(200)))
    assert [result.structured_content["text"] for result in results] == [str(n) for n in range(200)]


async def test_closing_fails_what_still_waits(mode: Any) -> None:
    tools = DemoTools()
    client = memory_client(demo_server(tools), mode=mode)
    await client.open()
    task = asyncio.create_task(client.call_tool("demo_hang"))
    await tools.started.wait()
    await client.close()
    await client.close()
    with pytest.raises(Unavailable):
        await task
    with pytest.raises(Unavailable):
        await client.call_tool("demo_echo", {"text": "x"})


async def test_a_client_can_be_opened_again(mode: Any) -> None:
    client = memory_client(demo_server(), mode=mode)
    for _ in range(2):
        async with client:
            assert (await client.call_tool("demo_echo", {"text": "x"})).is_error is False
